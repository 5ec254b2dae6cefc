/// What a message is, by the name of its event (docs/pusher-rules.md, U3).
package enum PusherEventName: Sendable {
    case connectionEstablished, error, ping, pong
    case subscriptionSucceeded, subscriptionError, subscriptionCount
    case memberAdded, memberRemoved, cacheMiss
    case signInSuccess, watchlistEvents
    /// Another event of the prefix `pusher:`.
    case otherProtocol
    /// Another event of the prefix `pusher_internal:`, which applications never see.
    case otherInternal
    case application

    package init(_ event: UnsafeRawBufferPointer) {
        guard event.beginsWithWord("pusher") else {
            self = .application
            return
        }
        if event.beginsWithWord("pusher:") {
            self = PusherEventName.protocolEvent(event)
        } else if event.beginsWithWord("pusher_internal:") {
            self = PusherEventName.internalEvent(event)
        } else {
            self = .application
        }
    }

    /// Whether events of encrypted channels with this name are encrypted.
    package var isEncrypted: Bool { self == .application }

    private static func protocolEvent(_ event: UnsafeRawBufferPointer) -> PusherEventName {
        switch event.count {
        case 11 where event.isWord("pusher:ping"): .ping
        case 11 where event.isWord("pusher:pong"): .pong
        case 12 where event.isWord("pusher:error"): .error
        case 17 where event.isWord("pusher:cache_miss"): .cacheMiss
        case 21 where event.isWord("pusher:signin_success"): .signInSuccess
        case 25 where event.isWord("pusher:subscription_error"): .subscriptionError
        case 29 where event.isWord("pusher:connection_established"): .connectionEstablished
        default: .otherProtocol
        }
    }

    private static func internalEvent(_ event: UnsafeRawBufferPointer) -> PusherEventName {
        switch event.count {
        case 28 where event.isWord("pusher_internal:member_added"): .memberAdded
        case 30 where event.isWord("pusher_internal:member_removed"): .memberRemoved
        case 32 where event.isWord("pusher_internal:watchlist_events"): .watchlistEvents
        case 34 where event.isWord("pusher_internal:subscription_error"): .subscriptionError
        case 34 where event.isWord("pusher_internal:subscription_count"): .subscriptionCount
        case 38 where event.isWord("pusher_internal:subscription_succeeded"):
            .subscriptionSucceeded
        default: .otherInternal
        }
    }

    package static let clientPrefix = "client-"

    /// Checks the name of a client event.
    /// - Throws: `.invalidArgument` if it does not begin with `client-`.
    package static func checkClientEvent(_ name: String) throws(RealtimeError) {
        guard name.beginsWithBytes(of: clientPrefix) else {
            throw RealtimeError(
                .invalidArgument,
                "the client event \(name.quoted()) does not begin with \"\(clientPrefix)\"")
        }
    }
}
