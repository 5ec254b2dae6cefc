internal import Engine
internal import Session
import Synchronization
import Wire

/// What the handlers of a connection look up and who waits for them: held by the connection, so
/// that a handler under way outlives the `Spreadbot` it is of.
final class SpreadbotDesk: Sendable {
    struct World {
        var open: (@Sendable (Spreadbot.Transport, Bool) -> Void)?
        var error: (@Sendable (Spreadbot.ErrorEvent) -> Void)?
        var disconnected: (@Sendable (RealtimeError?) -> Void)?
        /// Those who wait for the connection.
        var waiters: [UInt64: CheckedContinuation<Void, any Error>] = [:]
        var lastTicket: UInt64 = 0
        var mailbox: Mailbox<Spreadbot.Message>?
    }

    let world = Mutex(World())
    private let queue: CallbackQueue?
    /// It outlives every handler, and holds this.
    private unowned let connection: SpreadbotConnection

    init(_ connection: SpreadbotConnection, _ config: Spreadbot.Configuration) {
        self.connection = connection
        if case .loop = config.executor {
            queue = nil
        } else {
            queue = CallbackQueue(
                on: config.executor, config.maxBufferedMessages, config.maxBufferedBytes
            ) { [weak connection] in try? connection?.resume() }
        }
    }

    func addHandlers() throws(RealtimeError) {
        try connection.setHandlers { handlers in
            handlers.open = { [self] in opened(Spreadbot.Transport($0), $1) }
            handlers.error = { [self] failure in
                guard let handler = world.withLock({ $0.error }) else { return }
                let event = Spreadbot.ErrorEvent(failure)
                run { handler(event) }
            }
            handlers.disconnected = { [self] in over($0) }
        }
    }

    /// Runs a handler where the user wants it.
    func run(_ count: Int = 0, _ body: @escaping @Sendable () -> Void) {
        guard let queue else { return body() }
        guard queue.put(count: count, body) else { return }
        try? connection.pause()
        // Those who emptied the queue meanwhile called resume before there was a pause.
        if !queue.isPaused { try? connection.resume() }
    }

    private func opened(_ transport: Spreadbot.Transport, _ resumed: Bool) {
        let (handler, waiters) = world.withLock { world in
            defer { world.waiters = [:] }
            return (world.open, world.waiters)
        }
        for waiter in waiters.values { waiter.resume() }
        if let handler { run { handler(transport, resumed) } }
    }

    private func over(_ error: RealtimeError?) {
        let (handler, waiters, mailbox) = world.withLock { world in
            defer {
                world.waiters = [:]
                world.mailbox = nil
            }
            return (world.disconnected, world.waiters, world.mailbox)
        }
        let closed = RealtimeError(.closed, "the connection was closed")
        for waiter in waiters.values { waiter.resume(throwing: error ?? closed) }
        mailbox?.finish(error.map { .failed($0) } ?? .normal)
        if let handler { run { handler(error) } }
    }

    // MARK: Those who wait for the connection

    func newTicket() -> UInt64 {
        world.withLock { world in
            world.lastTicket += 1
            return world.lastTicket
        }
    }

    func wait(_ ticket: UInt64, _ continuation: CheckedContinuation<Void, any Error>) {
        world.withLock { $0.waiters[ticket] = continuation }
    }

    /// One that waits no longer, or never did, is left alone.
    func stopWaiting(_ ticket: UInt64, _ error: any Error) {
        world.withLock { $0.waiters.removeValue(forKey: ticket) }?.resume(throwing: error)
    }

    /// The connection is given back: nothing comes any more.
    func close() {
        queue?.close()
        world.withLock { $0.mailbox }?.finish(.normal, discarding: true)
    }
}
