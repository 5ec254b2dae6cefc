/// The requests of push notifications (docs/pusher-rules.md, U16).
package struct PushInterestsRequest: Sendable, Equatable {
    package let method: String
    package let url: String
    /// JSON.
    package let body: [UInt8]

    /// Where the service was before it ended. Servers that imitate it have another URL.
    package static let defaultBaseURL =
        "https://nativepushclient-cluster1.pusher.com/client_api/v1"
    package static let mediaType = "application/json"
    /// The name of the header that names the library.
    package static let libraryHeader = "X-Pusher-Library"
    package static let library = "librealtime \(LibraryVersion.text)"

    private init(_ method: String, _ baseURL: String, _ path: String, _ body: [UInt8]) {
        self.method = method
        url = (baseURL.hasSuffix("/") ? String(baseURL.dropLast()) : baseURL) + path
        self.body = body
    }

    package static func register(
        token: [UInt8], platform: String, key: String, baseURL: String
    ) -> PushInterestsRequest {
        var body = object("app_key", key)
        append("platform_type", platform, to: &body)
        append("token", hexText(token), to: &body)
        return PushInterestsRequest("POST", baseURL, "/clients", closed(body))
    }

    package static func subscribe(
        _ interest: String, clientID: String, key: String, baseURL: String
    ) -> PushInterestsRequest {
        PushInterestsRequest(
            "POST", baseURL, path(clientID, interest), closed(object("app_key", key)))
    }

    package static func unsubscribe(
        _ interest: String, clientID: String, key: String, baseURL: String
    ) -> PushInterestsRequest {
        PushInterestsRequest(
            "DELETE", baseURL, path(clientID, interest), closed(object("app_key", key)))
    }

    /// Replaces all interests.
    package static func setSubscriptions(
        _ interests: [String], clientID: String, key: String, baseURL: String
    ) -> PushInterestsRequest {
        var body = object("app_key", key)
        body.append(contentsOf: #","interests":["#.utf8)
        for (index, interest) in interests.enumerated() {
            if index > 0 { body.append(UInt8(ascii: ",")) }
            JSONString.write(interest, to: &body)
        }
        body.append(UInt8(ascii: "]"))
        return PushInterestsRequest("PUT", baseURL, path(clientID, ""), closed(body))
    }

    /// The client id in the reply to `register`.
    /// - Throws: `.protocolViolation` if there is none.
    package static func clientID(
        inReply body: UnsafeRawBufferPointer
    ) throws(RealtimeError) -> String {
        let reply = try JSONValue(parsing: body)
        guard let id = reply["id"]?.stringValue, !id.isEmpty else {
            throw RealtimeError(
                .protocolViolation, "the reply to the registration has no \"id\" that is a string")
        }
        return id
    }

    private static func path(_ clientID: String, _ interest: String) -> String {
        "/clients/\(formEncoded(clientID))/interests/\(formEncoded(interest))"
    }

    private static func object(_ name: String, _ value: String) -> [UInt8] {
        var body: [UInt8] = [UInt8(ascii: "{")]
        JSONString.write(name, to: &body)
        body.append(UInt8(ascii: ":"))
        JSONString.write(value, to: &body)
        return body
    }

    private static func append(_ name: String, _ value: String, to body: inout [UInt8]) {
        body.append(UInt8(ascii: ","))
        JSONString.write(name, to: &body)
        body.append(UInt8(ascii: ":"))
        JSONString.write(value, to: &body)
    }

    private static func closed(_ body: [UInt8]) -> [UInt8] { body + [UInt8(ascii: "}")] }
}
