import Session
import Wire

/// A connection to a Meteor server that carries messages both ways. It tries once; its owner
/// decides what follows from its end. It is used on its loop's thread, where it calls its owner,
/// but never inside a call of the owner.
protocol DDPSocket: AnyObject {
    func start() throws(RealtimeError)
    /// Sends a message in UTF-8, once the socket is open. If too many bytes wait to be sent, the
    /// socket ends with `.bufferFull`.
    func send(_ text: [UInt8])
    /// Stops receiving, so that the server is slowed down, or continues. Only on an open socket.
    func setPaused(_ isPaused: Bool)
    /// What was sent so far.
    var sentBytes: SentBytes { get }
    /// Ends it once all messages are sent, or some seconds later; then `ended` is called.
    func close()
    /// Ends it at once, without a further call.
    /// - Parameter last: a message to send before, if that is possible at once.
    func drop(saying last: [UInt8]?)
}

extension DDPSocket {
    func drop() { drop(saying: nil) }
}

/// What the cookies of a server are sent in, and taken from.
extension DDPSocketOwner {
    /// The options' headers for a request, with the cookies.
    func fields(_ configuration: DDPClientConfiguration, for url: HTTPURL) -> [HeaderField] {
        cookies.fields(
            with: configuration.fields, for: url, wallClock: Loop.wallClockMilliseconds())
    }

    func takeCookies(_ fields: [String], from url: HTTPURL) {
        guard !fields.isEmpty else { return }
        cookies.take(fields, from: url, wallClock: Loop.wallClockMilliseconds())
    }
}

/// Receives what a socket reports: `opened` at most once, then messages, then `ended` once.
protocol DDPSocketOwner: AnyObject {
    /// The owner still works on earlier messages. It has paused the socket, which also keeps the
    /// messages that it has read already.
    var isBusy: Bool { get }
    /// Cookies of the server, which all its sockets send and set: a load balancer leads a client to
    /// the same server by them.
    var cookies: CookieJar { get set }
    /// - Parameter opened: the response that opened it, and its connection.
    func opened(_ socket: any DDPSocket, _ opened: Opened)
    /// Bytes of the server have arrived, possibly only a part of a message.
    func heard(by socket: any DDPSocket)
    /// The text is in UTF-8, and valid until this returns.
    func received(_ text: UnsafeRawBufferPointer, by socket: any DDPSocket)
    func ended(_ end: DDPSocketEnd, of socket: any DDPSocket)
}
