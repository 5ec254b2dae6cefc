/// The body of a request that sends messages: a JSON array of strings.
package enum SockJSBody {
    /// Servers answer 500 to other types that are not JSON or XML.
    package static let mediaType = "text/plain;charset=UTF-8"

    /// - Parameter messages: in UTF-8. Invalid bytes are replaced by U+FFFD.
    package static func bytes(of messages: some Sequence<[UInt8]>) -> [UInt8] {
        var body: [UInt8] = [UInt8(ascii: "[")]
        for message in messages {
            if body.count > 1 { body.append(UInt8(ascii: ",")) }
            JSONString.write(String(decoding: message, as: UTF8.self), to: &body)
        }
        body.append(UInt8(ascii: "]"))
        return body
    }
}
