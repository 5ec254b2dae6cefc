import Session

/// The transport of a WebSocket whose end was reported, until the server closes it (RFC 6455
/// §7.1.1). If we closed it with bytes unread, the kernel would reset it, and our close frame might
/// be lost. The loop retains this object, but is not kept alive by it.
final class LingeringTransport: LoopSource, TimerTarget {
    /// A server that keeps the connection open is not awaited for longer.
    private static let patience = Duration.seconds(2)
    /// Nor one that keeps sending.
    private static let mostIgnored = 2 << 20

    private let transport: Transport
    /// Retains this object for as long as it needs the loop.
    private unowned(unsafe) let loop: Loop
    private let pool: WebSocketPool
    private let timer = LoopTimer()
    private var token: UInt64?
    private var ignored = 0

    /// - Parameter transport: not watched by the loop.
    static func begin(_ transport: Transport, on loop: Loop, _ pool: WebSocketPool) {
        // A server that waits for our end gets it even if the loop does not run again.
        transport.shutDown()
        let lingering = LingeringTransport(transport, loop, pool)
        guard
            let token = try? loop.add(
                lingering, descriptor: transport.descriptor, events: PollEvents.readable)
        else { return transport.close() }
        lingering.token = token
        loop.arm(lingering.timer, lingering, at: Loop.now() + patience)
        // Usually the server has closed it already.
        loop.schedule(lingering)
    }

    private init(_ transport: Transport, _ loop: Loop, _ pool: WebSocketPool) {
        self.transport = transport
        self.loop = loop
        self.pool = pool
    }

    func ready(_ events: UInt32) { read() }

    func turn() { read() }

    private func read() {
        var share = loop.readShare
        while token != nil, share > 0 {
            switch transport.read(into: pool.receiveBuffer()) {
            case .bytes(let count, let isDrained):
                share -= count
                ignored += count
                if ignored > LingeringTransport.mostIgnored { return close() }
                if isDrained { return }
            case .wouldBlock: return
            case .end, .failed: return close()
            }
        }
        // epoll does not report bytes that wait in the TLS library.
        if token != nil, transport.isBuffered { loop.schedule(self) }
    }

    func timeReached(_ now: Instant) { close() }

    private func close() {
        guard let token else { return }
        self.token = nil
        loop.disarm(timer)
        loop.remove(token, descriptor: transport.descriptor)
        transport.close()
    }

    func loopClosed() { close() }
}
