package import CShims
package import Wire

/// Why a connection was lost or could not be established, and what happens next.
package struct WebSocketFailure {
    /// `.closed` if the peer closed with a closing handshake and another attempt follows.
    package let error: RealtimeError
    package let code: CloseCode
    package let reason: String
    /// The delay until the next attempt; nil if there is none, or if it waits for the network.
    package var retryIn: Duration?
    /// The number of the next attempt; 0 if there is none.
    package var attempt = 0
    package let isFatal: Bool
}

/// How a connection ended.
package struct WebSocketEnd {
    package let code: CloseCode
    package let reason: String
    /// Both close frames were exchanged.
    package let isClean: Bool
    /// The failure that was reported before; nil after a closing handshake.
    package let error: RealtimeError?

    /// The code of the peer's close frame; nil if there was none.
    var codeOfPeer: CloseCode? { code == .abnormal || code == .noStatus ? nil : code }
}

/// The handlers of a WebSocket. They are called on the loop's thread, one at a time; bytes and
/// pointers are valid until the handler returns.
///
/// Unchecked because handlers may be set on any thread and are called on the loop's. Callers of the
/// C interface must ensure that theirs allow that; those of Swift are Sendable.
package struct WebSocketHandlers: EndpointHandlers, @unchecked Sendable {
    /// How messages are delivered.
    package enum Delivery {
        case nobody
        /// Whole messages, one by one.
        case each((MessageKind, UnsafeRawBufferPointer) -> Void)
        /// All messages of one read together: a base pointer, and offsets from it.
        case together((UnsafeRawPointer, UnsafeBufferPointer<rt_message>) -> Void)
        /// The same; the handler returns how many of the first ones it has taken. After fewer than
        /// all it pauses the connection. With `all` it must take all of them.
        case asMany((UnsafeRawPointer, UnsafeBufferPointer<rt_message>, _ all: Bool) -> Int)
        /// Pieces as they arrive; a whole message is the first and last piece.
        case inPieces(
            (MessageKind, UnsafeRawBufferPointer, _ isFirst: Bool, _ isLast: Bool) -> Void)

        var isInPieces: Bool { if case .inPieces = self { true } else { false } }

        package var isSomebody: Bool { if case .nobody = self { false } else { true } }
    }

    package var open: ((Opened) -> Void)?
    private var each: ((MessageKind, UnsafeRawBufferPointer) -> Void)?
    package var failed: ((WebSocketFailure) -> Void)?
    /// The last callback.
    package var close: ((WebSocketEnd) -> Void)?

    /// Rarely used handlers, boxed so that most connections do not pay for them.
    private final class Rare {
        init(copying other: Rare? = nil) {
            guard let other else { return }
            (reconnect, drained, pong) = (other.reconnect, other.drained, other.pong)
            credentials = other.credentials
            activity = other.activity
            delivery = other.delivery
        }

        var reconnect: ((_ attempt: Int) throws(RealtimeError) -> Bool)?
        var credentials: ((HTTPResponse) throws(RealtimeError) -> CredentialsAnswer)?
        var drained: (() -> Void)?
        var pong: ((_ roundTrip: Duration) -> Void)?
        var activity: (() -> Void)?
        /// Unless it is `each`.
        var delivery = Delivery.nobody
    }

    private var rare: Rare?

    /// Always copies, because the loop's thread may be calling the previous ones.
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
            case .each(let handle): each = handle
            case .together, .asMany, .inPieces: own().delivery = newValue
            }
        }
    }
    /// The attempt with this number begins now, unless this returns false or throws. Options may be
    /// changed here.
    package var reconnect: ((_ attempt: Int) throws(RealtimeError) -> Bool)? {
        get { rare?.reconnect }
        set { own().reconnect = newValue }
    }
    /// The server refused the handshake for want of credentials (401, 403, or 407 of a proxy).
    package var credentials: ((HTTPResponse) throws(RealtimeError) -> CredentialsAnswer)? {
        get { rare?.credentials }
        set { own().credentials = newValue }
    }
    package var drained: (() -> Void)? {
        get { rare?.drained }
        set { own().drained = newValue }
    }
    package var pong: ((_ roundTrip: Duration) -> Void)? {
        get { rare?.pong }
        set { own().pong = newValue }
    }
    /// Bytes of any kind arrived; called before what they contain is delivered.
    var activity: (() -> Void)? {
        get { rare?.activity }
        set { own().activity = newValue }
    }
    package var takeMessages: Bool { delivery.isSomebody }

    package init() {}
}
