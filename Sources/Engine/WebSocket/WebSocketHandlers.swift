package import CShims
package import Wire

/// What a WebSocket tells its user. All are called on the loop's thread, one at a time; bytes and
/// pointers are valid until the handler returns.
package struct WebSocketHandlers {
    /// The subprotocol the server selected and its Sec-WebSocket-Extensions, "" without.
    package var open: ((_ subprotocol: String, _ extensions: String) -> Void)?
    package var message: ((MessageKind, UnsafeRawBufferPointer) -> Void)?
    /// All messages of one read: a base pointer, and offsets from it. Takes the place of `message`.
    package var messages: ((UnsafeRawPointer, UnsafeBufferPointer<rt_message>) -> Void)?
    /// Messages in pieces as they come, in the place of whole ones.
    package var piece:
        (
            (MessageKind, UnsafeRawBufferPointer, _ isFirst: Bool, _ isLast: Bool) -> Void
        )?
    package var error: ((RealtimeError) -> Void)?
    package var close: ((CloseCode, _ reason: String, _ isClean: Bool) -> Void)?

    /// Those that many connections have none of, in memory of their own.
    private final class Rare {
        init(copying other: Rare? = nil) {
            guard let other else { return }
            (refused, lost, reconnect) = (other.refused, other.lost, other.reconnect)
            (drained, pong) = (other.drained, other.pong)
        }

        var refused: ((HTTPResponse) -> Void)?
        var lost: ((CloseCode, _ reason: String, _ delay: Duration?, _ attempt: Int) -> Void)?
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

    /// The server answered the handshake with another status; `error` follows.
    package var refused: ((HTTPResponse) -> Void)? {
        get { rare?.refused }
        set { own().refused = newValue }
    }
    /// The connection is lost or was not made, and another attempt of this number follows after
    /// the delay; nil when there is a network again.
    package var lost: ((CloseCode, _ reason: String, _ delay: Duration?, _ attempt: Int) -> Void)? {
        get { rare?.lost }
        set { own().lost = newValue }
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
