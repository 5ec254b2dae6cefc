import Session
import Wire

/// The WebSocket of one attempt. It tries once; the session decides what follows from its end.
final class PusherSocket {
    let number: UInt64
    let webSocket: WebSocketConnection
    /// Why it failed, until its end is reported.
    var failure: RealtimeError?

    convenience init(
        _ attempt: PusherSession.Attempt, _ configuration: PusherConfiguration, on loop: Loop
    ) throws(RealtimeError) {
        let webSocket = try WebSocketConnection(url: attempt.url.text, on: loop)
        webSocket.isLeg = true
        try webSocket.configure { (options) throws(RealtimeError) in
            options.url = attempt.url
            if let subprotocol = attempt.subprotocol { try options.addSubprotocol(subprotocol) }
            for field in configuration.fields {
                try options.addHeader(name: field.name, value: field.value)
            }
            options.network = configuration.network
            options.redirects = configuration.redirects
            options.compression.enabled = configuration.compression
            options.limits.messageBytes = configuration.maxMessageBytes
            // The session has times of its own for these.
            options.openTimeout = .zero
            options.closeTimeout = .zero
            options.pingInterval = .zero
            options.sendLimit = PusherConfiguration.unsentLimit
        }
        self.init(attempt.number, webSocket)
    }

    private init(_ number: UInt64, _ webSocket: WebSocketConnection) {
        self.number = number
        self.webSocket = webSocket
    }

    /// - Returns: false if the server does not read, and too much waits for it. If the WebSocket is
    ///   closing, nothing is sent, and its end is reported.
    func send(_ message: [UInt8]) -> Bool {
        do throws(RealtimeError) {
            try message.span.withUnsafeBytes { (bytes) throws(RealtimeError) in
                try webSocket.send(.text, bytes)
            }
        } catch {
            return error.code != .bufferFull
        }
        return true
    }

    func ping() { try? webSocket.ping(UnsafeRawBufferPointer(start: nil, count: 0)) }

    func close() { try? webSocket.close(code: CloseCode.normal.rawValue, reason: "") }

    /// Drops it: nothing more is reported.
    func drop() { webSocket.abandon() }
}
