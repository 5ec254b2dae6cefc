/// What authorizes a subscription (docs/pusher-rules.md, U8). It is never printed.
package struct PusherAuthorizationAnswer: Sendable, CustomStringConvertible {
    package let auth: String
    /// Forwarded to the server unchanged.
    package let channelData: String?
    package let sharedSecret: SharedSecret?

    package init(auth: String, channelData: String?, sharedSecret: SharedSecret?) {
        self.auth = auth
        self.channelData = channelData
        self.sharedSecret = sharedSecret
    }

    package var description: String { "(authorization)" }

    /// Reads the body of an answer, an object with `auth`, `channel_data` and `shared_secret`.
    /// - Throws: `.auth`, without a part of the body.
    package init(
        json body: UnsafeRawBufferPointer, for kind: PusherChannelKind
    ) throws(RealtimeError) {
        self = try PusherAuthorizationAnswer.read(body) { root throws(RealtimeError) in
            try PusherAuthorizationAnswer(root, for: kind)
        }
    }

    /// Reads the answer to a request for many channels: an object with a member for each name,
    /// which is an answer, or an answer as `data` beside a `status`. A failure concerns only its
    /// channel.
    /// - Returns: a result for each channel, in their order.
    /// - Throws: `.auth` if the body is not a JSON object.
    package static func batch(
        json body: UnsafeRawBufferPointer, for channels: [PusherChannelName]
    ) throws(RealtimeError) -> [Result<PusherAuthorizationAnswer, RealtimeError>] {
        try read(body) { root throws(RealtimeError) in
            var members = ByteTable<JSONNode>()
            for member in root.members {
                _ = member.name.withString { members[$0] = member.value }
            }
            var results: [Result<PusherAuthorizationAnswer, RealtimeError>] = []
            for channel in channels {
                do throws(RealtimeError) {
                    results.append(.success(try one(members[channel.text], for: channel.kind)))
                } catch {
                    results.append(.failure(error))
                }
            }
            return results
        }
    }

    private static func one(
        _ node: JSONNode?, for kind: PusherChannelKind
    ) throws(RealtimeError) -> PusherAuthorizationAnswer {
        guard let node, node.kind == .object else {
            throw RealtimeError(.auth, "the authorization answer has no object for the channel")
        }
        guard node.member("auth") == nil, let status = node.member("status") else {
            return try PusherAuthorizationAnswer(node, for: kind)
        }
        guard status.integer == 200 || status.integer == 201 else {
            throw refusal(status.integer.map { Int($0) }, node.member("data"))
        }
        guard let data = node.member("data"), data.kind == .object else {
            throw RealtimeError(.auth, "the authorization answer has no data for the channel")
        }
        return try PusherAuthorizationAnswer(data, for: kind)
    }

    /// The error of one channel, with the status and the text that the server gave it.
    private static func refusal(_ status: Int?, _ data: JSONNode?) -> RealtimeError {
        let words = "the server refused to authorize the channel"
        guard let status, (100...599).contains(status) else { return RealtimeError(.auth, words) }
        let body = data?.withString { PusherRedaction.bytes(of: $0) } ?? []
        return RealtimeError(
            .auth, "\(words) with status \(status)",
            response: HTTPResponse(ResponseHead(status: status), body: body))
    }

    private init(_ root: JSONNode, for kind: PusherChannelKind) throws(RealtimeError) {
        auth = try PusherAuthorizationAnswer.auth(root)
        let data = root.member("channel_data")
        if let data, data.kind != .null, data.kind != .string {
            throw RealtimeError(
                .auth, "channel_data of the authorization answer is not a string")
        }
        channelData = data?.string
        guard kind == .encrypted else {
            sharedSecret = nil
            return
        }
        guard let secret = root.member("shared_secret"), secret.kind != .null else {
            throw RealtimeError(
                .auth,
                "the authorization answer has no shared_secret, which an encrypted channel needs")
        }
        guard let key = secret.withSecret({ SharedSecret(base64: $0) }), let key else {
            throw RealtimeError(
                .auth, "shared_secret of the authorization answer is not base64 of 32 bytes")
        }
        sharedSecret = key
    }

    fileprivate static func auth(_ root: JSONNode) throws(RealtimeError) -> String {
        guard let auth = root.member("auth")?.string, !auth.isEmpty else {
            throw RealtimeError(.auth, "the authorization answer has no \"auth\" that is a string")
        }
        return auth
    }

    /// Reads a body that must be a JSON object. What it contains is never shown.
    fileprivate static func read<Result>(
        _ body: UnsafeRawBufferPointer,
        _ read: (JSONNode) throws(RealtimeError) -> Result
    ) throws(RealtimeError) -> Result {
        var document = JSONDocument()
        var fault = RealtimeError(.auth, "the authorization answer is not a JSON object")
        do throws(RealtimeError) {
            return try document.read(body) { root throws(RealtimeError) in
                guard root.kind == .object else { throw fault }
                do throws(RealtimeError) {
                    return try read(root)
                } catch {
                    fault = error
                    throw error
                }
            }
        } catch {
            throw fault
        }
    }
}

/// What signs a user in (docs/pusher-rules.md, U14). It is never printed.
package struct PusherUserAnswer: Sendable, CustomStringConvertible {
    package let auth: String
    /// A JSON text with the member `id`, forwarded to the server unchanged.
    package let userData: String

    package init(auth: String, userData: String) {
        self.auth = auth
        self.userData = userData
    }

    package var description: String { "(authorization)" }

    /// Reads the body of an answer, an object with `auth` and `user_data`.
    /// - Throws: `.auth`, without a part of the body.
    package init(json body: UnsafeRawBufferPointer) throws(RealtimeError) {
        self = try PusherAuthorizationAnswer.read(body) { root throws(RealtimeError) in
            let auth = try PusherAuthorizationAnswer.auth(root)
            guard let data = root.member("user_data")?.string else {
                throw RealtimeError(
                    .auth, "the authorization answer has no \"user_data\" that is a string")
            }
            return PusherUserAnswer(auth: auth, userData: data)
        }
    }
}
