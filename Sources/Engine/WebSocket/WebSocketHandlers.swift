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
///
/// Unchecked because handlers may be set on any thread and are called on the loop's: callers of the
/// C interface promise that theirs bear it, Swift's are Sendable.
package struct WebSocketHandlers: EndpointHandlers, @unchecked Sendable {
    /// Who takes messages.
    package enum Delivery {
        case nobody
        /// Whole ones, one by one.
        case each((MessageKind, UnsafeRawBufferPointer) -> Void)
        /// All of one read: a base pointer, and offsets from it.
        case together((UnsafeRawPointer, UnsafeBufferPointer<rt_message>) -> Void)
        /// In pieces as they come; a whole one is first and last.
        case inPieces(
            (MessageKind, UnsafeRawBufferPointer, _ isFirst: Bool, _ isLast: Bool) -> Void)

        var isInPieces: Bool { if case .inPieces = self { true } else { false } }

        package var isSomebody: Bool { if case .nobody = self { false } else { true } }
    }

    package var open: ((Opened) -> Void)?
    private var each: ((MessageKind, UnsafeRawBufferPointer) -> Void)?
    package var failed: ((WebSocketFailure) -> Void)?
    /// The last one.
    package var close: ((WebSocketEnd) -> Void)?

    /// Those that many connections have none of, in memory of their own.
    private final class Rare {
        init(copying other: Rare? = nil) {
            guard let other else { return }
            (reconnect, drained, pong) = (other.reconnect, other.drained, other.pong)
            delivery = other.delivery
        }

        var reconnect: ((_ attempt: Int) throws(RealtimeError) -> Bool)?
        var drained: (() -> Void)?
        var pong: ((_ roundTrip: Duration) -> Void)?
        /// Other than one by one.
        var delivery = Delivery.nobody
    }

    private var rare: Rare?

    /// Always copies: who is told meanwhile has those of before.
    private mutating func own() -> Rare {
        let copy = Rare(copying: rare)
        rare = copy
        return copy
    }

    package var delivery: Delivery {
        get { each.map { .each($0) } ?? rare?.delivery ?? .nobody }
        set {
            if rare != nil { own().delivery = .nobody }
            each = nil
            switch newValue {
            case .nobody: break
            case .each(let tell): each = tell
            case .together, .inPieces: own().delivery = newValue
            }
        }
    }
    /// An attempt of this number begins now, unless this says false or throws; options may be
    /// changed here.
    package var reconnect: ((_ attempt: Int) throws(RealtimeError) -> Bool)? {
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
    package var takeMessages: Bool { delivery.isSomebody }

    package init() {}
}
