import CShims

/// Signs subscriptions in the client, for development (docs/pusher-rules.md, U8).
package enum PusherSignature {
    /// The HMAC with SHA-256 of a message, in lower-case hexadecimal digits.
    /// - Throws: `.system` if libcrypto fails.
    package static func hex(
        _ message: String, _ secret: SecretBytes
    ) throws(RealtimeError) -> String {
        let message = Array(message.utf8)
        var isMade = false
        let code = [UInt8](unsafeUninitializedCapacity: 32) { code, count in
            isMade = secret.withBytes { secret in
                shim_hmac_sha256(
                    secret.baseAddress?.assumingMemoryBound(to: UInt8.self), secret.count, message,
                    message.count, code.baseAddress)
            }
            count = isMade ? 32 : 0
        }
        guard isMade else {
            throw RealtimeError(.system, "libcrypto could not make the HMAC of a signature")
        }
        return hexText(code)
    }

    /// The authorization of a channel; with `channelData` for presence.
    package static func channel(
        _ channel: String, channelData: String?, socketID: String, key: String,
        secret: SecretBytes
    ) throws(RealtimeError) -> String {
        let tail = channelData.map { ":" + $0 } ?? ""
        return "\(key):\(try hex("\(socketID):\(channel)\(tail)", secret))"
    }

    /// The authorization of a user.
    package static func user(
        _ userData: String, socketID: String, key: String, secret: SecretBytes
    ) throws(RealtimeError) -> String {
        "\(key):\(try hex("\(socketID)::user::\(userData)", secret))"
    }

    /// The channel data of a presence channel.
    package static func channelData(userID: String, userInfo: JSONText?) -> String {
        userData("user_id", userID, userInfo)
    }

    /// The user data of a sign-in.
    package static func userData(id: String, userInfo: JSONText?) -> String {
        userData("id", id, userInfo)
    }

    private static func userData(_ name: String, _ id: String, _ userInfo: JSONText?) -> String {
        var bytes = Array("{\"\(name)\":".utf8)
        JSONString.write(id, to: &bytes)
        if let userInfo {
            bytes.append(contentsOf: #","user_info":"#.utf8)
            bytes.append(contentsOf: userInfo.bytes)
        }
        bytes.append(UInt8(ascii: "}"))
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The user id in a channel's data, with which the library knows its own member; nil if there
    /// is none.
    package static func userID(inChannelData data: String) -> String? {
        let bytes = Array(data.utf8)
        var document = JSONDocument()
        let id = bytes.withUnsafeBytes { data in
            try? document.read(data) { root in root.member("user_id")?.idText }
        }
        return id
    }
}
