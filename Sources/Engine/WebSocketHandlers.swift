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
    package var error: ((RealtimeError) -> Void)?
    package var close: ((CloseCode, _ reason: String, _ isClean: Bool) -> Void)?
    package var drained: (() -> Void)?
    package var pong: ((_ roundTrip: Duration) -> Void)?

    package init() {}
}
