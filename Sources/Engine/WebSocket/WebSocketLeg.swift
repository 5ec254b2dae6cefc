import Session
import Wire

/// A WebSocket that tries once: its owner decides what follows from its end. It is used on its
/// loop's thread.
final class WebSocketLeg {
    let connection: WebSocketConnection
    @exclusivity(unchecked) private var budget = TurnBudget()

    /// - Parameter set: sets the owner's own options. By default it may take any time to open, and
    ///   no pings are sent, because most owners see to that themselves.
    convenience init(
        _ url: HTTPURL, _ fields: [HeaderField], _ network: NetworkConfiguration,
        _ redirects: Redirects.Rules, on loop: Loop,
        _ set: (inout WebSocketConfiguration) throws(RealtimeError) -> Void
    ) throws(RealtimeError) {
        let connection = try WebSocketConnection(url: url.text, on: loop)
        connection.isLeg = true
        try connection.configure { (options) throws(RealtimeError) in
            options.url = url
            options.network = network
            options.redirects = redirects
            options.openTimeout = .zero
            options.pingInterval = .zero
            try set(&options)
            for field in fields { try options.addHeader(name: field.name, value: field.value) }
        }
        self.init(connection)
    }

    private init(_ connection: WebSocketConnection) { self.connection = connection }

    /// The handlers retain what they use until the end, or `drop`: drop even a leg that could not
    /// start.
    func start(
        _ reachability: Reachability?, _ set: (inout WebSocketHandlers) -> Void
    ) throws(RealtimeError) {
        try connection.setHandlers(set)
        try connection.setReachability(reachability)
        try connection.start()
    }

    /// Delivers messages one by one, in each turn as many as its time allows.
    /// - Parameter isCostly: whether a message may cost much more than its bytes.
    func delivery(
        isCostly: Bool = false,
        _ handle: @escaping (MessageKind, UnsafeRawBufferPointer) -> Void
    ) -> WebSocketHandlers.Delivery {
        let loop = connection.loop
        return .each { [self] kind, bytes in
            handle(kind, bytes)
            let isSpent =
                isCostly
                ? budget.isSpent(on: loop) : budget.isSpent(bytes: bytes.count, on: loop)
            if isSpent { connection.yield() }
        }
    }

    /// - Returns: nil if it is sent; `.bufferFull` if the server does not read, and too much waits
    ///   for it. With another error it is closing, and its end is reported.
    func send(_ kind: MessageKind, _ message: [UInt8]) -> RealtimeError? {
        do throws(RealtimeError) {
            try message.span.withUnsafeBytes { (bytes) throws(RealtimeError) in
                try connection.send(kind, bytes)
            }
            return nil
        } catch {
            return error
        }
    }

    /// Closes it properly, and reports the end.
    func close() { try? connection.close(code: CloseCode.normal.rawValue, reason: "") }

    /// - Parameter answered: not called if the leg is closing: its end then reports what arrived.
    func ping(answered: ((Duration) -> Void)? = nil) {
        try? connection.ping(UnsafeRawBufferPointer(start: nil, count: 0), answered: answered)
    }

    func setPaused(_ isPaused: Bool) {
        if isPaused { try? connection.pause() } else { try? connection.resume() }
    }
}
