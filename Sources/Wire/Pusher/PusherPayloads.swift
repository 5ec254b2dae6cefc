/// The data of `pusher:connection_established`.
package struct PusherHandshake: Sendable, Equatable {
    package let socketID: String
    /// After how much silence the server expects a ping; nil if it does not say.
    package let activityTimeout: Duration?

    /// Longer timeouts count as this, because they would not fit a clock.
    private static let longestTimeout = 86_400.0
    /// The longest id, which goes into every authorization request.
    private static let longestSocketID = 256

    /// - Throws: `.protocolViolation` if the socket id is missing.
    package init(_ data: PusherData) throws(RealtimeError) {
        (socketID, activityTimeout) = try data.read { root throws(RealtimeError) in
            guard let id = root.member("socket_id")?.string, !id.isEmpty,
                id.utf8.count <= PusherHandshake.longestSocketID
            else {
                throw RealtimeError(
                    .protocolViolation, "pusher:connection_established has no socket_id")
            }
            let seconds = root.member("activity_timeout")?.double ?? 0
            let milliseconds = (min(seconds, PusherHandshake.longestTimeout) * 1000).rounded()
            return (id, milliseconds >= 1 ? .milliseconds(Int64(milliseconds)) : nil)
        }
    }
}

/// The data of `pusher:error`.
package struct PusherErrorMessage: Sendable, Equatable {
    package var code: Int?
    package var message: String
    /// The channel that the error is about, if the server says so.
    package var channel: String?

    /// Signatures in the message are left out: some servers quote the one that they expected.
    package init(code: Int?, message: String, channel: String? = nil) {
        self.code = code
        self.message = PusherRedaction.text(of: message)
        self.channel = channel
    }

    /// A longer message is cut: its end says nothing, and to look for signatures in it takes time.
    private static let longestMessage = 64 << 10
    /// Longer data is not read.
    package static let longestData = 1 << 20

    private static func cut(_ message: String) -> String {
        guard message.utf8.count > longestMessage else { return message }
        return String(decoding: message.utf8.prefix(longestMessage), as: UTF8.self) + "…"
    }

    /// Data that is not an object becomes the message.
    package init(_ envelope: PusherEnvelope) {
        let channel = envelope.channel.map { String(decoding: $0, as: UTF8.self) }
        let bytes = envelope.data.bytes
        guard bytes.count <= PusherErrorMessage.longestData else {
            let text = String(
                decoding: bytes.prefix(PusherErrorMessage.longestMessage), as: UTF8.self)
            self.init(code: nil, message: text + "…", channel: channel)
            return
        }
        let parts = try? envelope.data.read { root -> (Int?, String, String?)? in
            guard root.kind == .object else { return nil }
            let code = root.member("code")?.integer.flatMap { Int(exactly: $0) }
            return (
                code, PusherErrorMessage.cut(root.member("message")?.string ?? ""),
                root.member("channel")?.string
            )
        }
        if let (code, message, inner) = parts {
            self.init(code: code, message: message, channel: channel ?? inner)
        } else {
            let text = String(decoding: envelope.data.bytes, as: UTF8.self)
            self.init(code: nil, message: PusherErrorMessage.cut(text), channel: channel)
        }
    }
}

/// The data of `pusher:subscription_error`, which may lack any part.
package struct PusherSubscriptionError: Sendable, Equatable {
    package let type: String?
    package let error: String?
    /// The HTTP status with which an authorization request would have failed.
    package let status: Int?

    package init(_ data: PusherData) {
        let parts = try? data.read { root in
            (
                root.member("type")?.string, root.member("error")?.string,
                root.member("status")?.integer.flatMap { Int(exactly: $0) }
            )
        }
        (type, error, status) = parts ?? (nil, nil, nil)
    }
}

package enum PusherSubscriptionCount {
    /// The data of `pusher_internal:subscription_count`; nil if it has no count.
    package static func read(_ data: PusherData) -> Int? {
        let count = try? data.read { root in root.member("subscription_count")?.integer }
        return count.flatMap { $0 >= 0 ? Int(exactly: $0) : nil }
    }
}

/// The data of `pusher:signin_success`.
package struct PusherSignedInUser: Sendable, Equatable {
    package let id: String
    /// The JSON text that the authorization had.
    package let userData: String

    /// - Throws: `.protocolViolation` if the user id is missing.
    package init(_ data: PusherData) throws(RealtimeError) {
        let userData = try data.read { root -> String? in root.member("user_data")?.string }
        guard let userData, let id = PusherSignedInUser.id(in: userData) else {
            throw RealtimeError(
                .protocolViolation, "pusher:signin_success has no user_data with an id")
        }
        self.id = id
        self.userData = userData
    }

    /// The member `id` of a user's data; nil if it is not a string, or empty.
    package static func id(in userData: String) -> String? {
        let id = (try? JSONValue(parsing: userData))?["id"]?.stringValue
        return id.flatMap { $0.isEmpty ? nil : $0 }
    }
}

/// Users of the watchlist came or left.
package struct PusherWatchlistEvent: Sendable, Equatable {
    /// `online` or `offline`; servers may add others.
    package let name: String
    package let userIDs: [String]

    /// The data of `pusher_internal:watchlist_events`. Elements without a name are left out.
    package static func all(_ data: PusherData) throws(RealtimeError) -> [PusherWatchlistEvent] {
        try data.read { root in
            var events: [PusherWatchlistEvent] = []
            guard let list = root.member("events") else { return events }
            for element in list.elements {
                guard let name = element.member("name")?.string else { continue }
                let ids = element.member("user_ids")?.idTexts ?? []
                events.append(PusherWatchlistEvent(name: name, userIDs: ids))
            }
            return events
        }
    }

    private init(name: String, userIDs: [String]) {
        self.name = name
        self.userIDs = userIDs
    }

    /// The form in which Sockudo sends them: an event `online` or `offline` without a channel. nil
    /// for any other message.
    package init?(bare envelope: PusherEnvelope) {
        guard envelope.channel == nil,
            envelope.event.isWord("online") || envelope.event.isWord("offline"),
            let ids = try? envelope.data.read({ root in root.member("user_ids")?.idTexts })
        else { return nil }
        self.init(name: String(decoding: envelope.event, as: UTF8.self), userIDs: ids)
    }
}
