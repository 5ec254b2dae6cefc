/// The messages of the client.
package enum DDPWriter {
    package static let ping = Array(#"{"msg":"ping"}"#.utf8)
    package static let disconnect = Array(#"{"msg":"disconnect"}"#.utf8)

    /// - Parameters:
    ///   - versions: in order of preference.
    ///   - resuming: the last session, and how many of its messages were received.
    package static func connect(
        version: String, versions: [String], resuming: (session: String, count: Int)?
    ) -> [UInt8] {
        var bytes = Array(#"{"msg":"connect""#.utf8)
        if let resuming {
            append(#","session":"#, resuming.session, to: &bytes)
            bytes.append(contentsOf: #","receivedCount":"#.utf8)
            bytes.append(contentsOf: resuming.count.description.utf8)
        }
        append(#","version":"#, version, to: &bytes)
        bytes.append(contentsOf: #","support":["#.utf8)
        for (index, version) in versions.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            JSONString.write(version, to: &bytes)
        }
        bytes.append(contentsOf: "]}".utf8)
        return bytes
    }

    /// - Parameter id: the JSON text of the ping's `id`; nil if it had none.
    package static func pong(id: [UInt8]?) -> [UInt8] {
        guard let id else { return Array(#"{"msg":"pong"}"#.utf8) }
        return Array(#"{"msg":"pong","id":"#.utf8) + id + "}".utf8
    }

    package static func sub(id: String, name: String, params: [EJSON]) -> [UInt8] {
        var bytes = Array(#"{"msg":"sub""#.utf8)
        append(#","id":"#, id, to: &bytes)
        append(#","name":"#, name, to: &bytes)
        append(params, to: &bytes)
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    package static func unsub(id: String) -> [UInt8] {
        var bytes = Array(#"{"msg":"unsub""#.utf8)
        append(#","id":"#, id, to: &bytes)
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    /// - Parameter seed: of the random values that a stub drew; nil if it drew none.
    package static func method(
        id: String, name: String, params: [EJSON], seed: String?
    ) -> [UInt8] {
        var bytes = Array(#"{"msg":"method""#.utf8)
        append(#","id":"#, id, to: &bytes)
        append(#","method":"#, name, to: &bytes)
        append(params, to: &bytes)
        if let seed { append(#","randomSeed":"#, seed, to: &bytes) }
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    private static func append(_ name: String, _ value: String, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: name.utf8)
        JSONString.write(value, to: &bytes)
    }

    private static func append(_ params: [EJSON], to bytes: inout [UInt8]) {
        bytes.append(contentsOf: #","params":["#.utf8)
        for (index, value) in params.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            value.write(to: &bytes)
        }
        bytes.append(UInt8(ascii: "]"))
    }
}
