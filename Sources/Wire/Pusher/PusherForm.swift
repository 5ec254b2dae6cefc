/// The bodies of authorization requests, application/x-www-form-urlencoded
/// (docs/pusher-rules.md, U8).
package enum PusherForm {
    package static func channel(
        _ channel: String, socketID: String, parameters: [(name: String, value: String)] = []
    ) -> String {
        encode([("socket_id", socketID), ("channel_name", channel)] + parameters)
    }

    /// One request for many channels.
    package static func channels(
        _ channels: [String], socketID: String, parameters: [(name: String, value: String)] = []
    ) -> String {
        var fields = [(name: "socket_id", value: socketID)]
        for (index, channel) in channels.enumerated() {
            fields.append(("channel_name[\(index)]", channel))
        }
        return encode(fields + parameters)
    }

    package static func user(
        socketID: String, parameters: [(name: String, value: String)] = []
    ) -> String {
        encode([("socket_id", socketID)] + parameters)
    }

    private static func encode(_ fields: [(name: String, value: String)]) -> String {
        var text = ""
        for field in fields {
            if !text.isEmpty { text += "&" }
            text += "\(formEncoded(field.name))=\(formEncoded(field.value))"
        }
        return text
    }
}
