/// The messages that a client sends (docs/pusher-rules.md, U3).
package enum PusherMessage {
    package static let ping = Array(#"{"event":"pusher:ping","data":{}}"#.utf8)
    package static let pong = Array(#"{"event":"pusher:pong","data":{}}"#.utf8)

    /// - Parameter answer: nil for channels that need no authorization.
    package static func subscribe(
        _ channel: String, _ answer: PusherAuthorizationAnswer?
    ) -> [UInt8] {
        var bytes = Array(#"{"event":"pusher:subscribe","data":{"channel":"#.utf8)
        JSONString.write(channel, to: &bytes)
        if let answer {
            append(#","auth":"#, answer.auth, to: &bytes)
            if let data = answer.channelData { append(#","channel_data":"#, data, to: &bytes) }
        }
        bytes.append(contentsOf: "}}".utf8)
        return bytes
    }

    package static func unsubscribe(_ channel: String) -> [UInt8] {
        var bytes = Array(#"{"event":"pusher:unsubscribe","data":{"channel":"#.utf8)
        JSONString.write(channel, to: &bytes)
        bytes.append(contentsOf: "}}".utf8)
        return bytes
    }

    /// - Parameters:
    ///   - event: passed `PusherEventName.checkClientEvent`.
    ///   - data: nil for a message without data.
    package static func clientEvent(
        _ event: String, channel: String, data: JSONText?
    ) -> [UInt8] {
        var bytes = Array(#"{"event":"#.utf8)
        bytes.reserveCapacity(64 + event.utf8.count + channel.utf8.count + (data?.bytes.count ?? 0))
        JSONString.write(event, to: &bytes)
        append(#","channel":"#, channel, to: &bytes)
        if let data {
            bytes.append(contentsOf: #","data":"#.utf8)
            bytes.append(contentsOf: data.bytes)
        }
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    package static func signIn(_ answer: PusherUserAnswer) -> [UInt8] {
        var bytes = Array(#"{"event":"pusher:signin","data":{"auth":"#.utf8)
        JSONString.write(answer.auth, to: &bytes)
        append(#","user_data":"#, answer.userData, to: &bytes)
        bytes.append(contentsOf: "}}".utf8)
        return bytes
    }

    private static func append(_ name: String, _ value: String, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: name.utf8)
        JSONString.write(value, to: &bytes)
    }
}
