package import CShims
package import Wire

/// Why a connection was lost or was not made, and what follows.
package struct WebSocketFailure {
    /// `.closed` when the peer closed it in order, and another attempt follows.
    package let error: RealtimeError
    package let code: CloseCode
    package let reason: String
    /// Until the next attempt; nil when there is none, or when it waits for a network.
    package var retryIn: Duration?
    /// The number of the next attempt; 0 for none.
    package var attempt = 0
    package let isFatal: Bool
}

/// How a connection ended.
package struct WebSocketEnd {
    package let code: CloseCode
    package let reason: String
    /// Both close frames were exchanged.
    package let isClean: Bool
    /// What was reported before; nil for an end in order.
    package let error: RealtimeError?
}

/// What a WebSocket tells its user. All are called on the loop's thread, one at a time; bytes and
/// pointers are valid until the handler returns.
package struct WebSocketHandlers {
    package var open: ((Opened) -> Void)?
    package var message: ((MessageKind, UnsafeRawBufferPointer) -> Void)?
    /// All messages of one read: a base pointer, and offsets from it. Takes the place of `message`.
    package var messages: ((UnsafeRawPointer, UnsafeBufferPointer<rt_message>) -> Void)?
    /// Messages in pieces as they come, in the place of whole ones.
    package var piece:
        (
            (MessageKind, UnsafeRawBufferPointer, _ isFirst: Bool, _ isLast: Bool) -> Void
        )?
    package var failed: ((WebSocketFailure) -> Void)?
    /// The last one.
    package var close: ((WebSocketEnd) -> Void)?

    /// Those that many connections have none of, in memory of their own.
    private final class Rare {
        init(copying other: Rare? = nil) {
            guard let other else { return }
            (reconnect, drained, pong) = (other.reconnect, other.drained, other.pong)
        }

        var reconnect: ((_ attempt: Int) throws -> Bool)?
        var drained: (() -> Void)?
        var pong: ((_ roundTrip: Duration) -> Void)?
    }

    private var rare: Rare?

    /// Always copies: `SharedHandlers`, which makes each change, keeps what was there before it.
    private mutating func own() -> Rare {
        let copy = Rare(copying: rare)
        rare = copy
        return copy
    }

    /// An attempt of this number begins now, unless this says false or throws; options may be
    /// changed here.
    package var reconnect: ((_ attempt: Int) throws -> Bool)? {
        get { rare?.reconnect }
        set { own().reconnect = newValue }
    }
    package var drained: (() -> Void)? {
        get { rare?.drained }
        set { own().drained = newValue }
    }
    package var pong: ((_ roundTrip: Duration) -> Void)? {
        get { rare?.pong }
        set { own().pong = newValue }
    }

    package init() {}
}
