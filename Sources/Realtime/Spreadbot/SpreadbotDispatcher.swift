internal import Engine
internal import Session
import Synchronization
import Wire

/// The handlers of a connection and the tasks that wait for it. The connection retains this object,
/// so a running handler can outlive its `Spreadbot`.
final class SpreadbotDispatcher: Sendable {
    struct State {
        var open: Handler<@Sendable (Spreadbot.Transport, Bool, Opened) -> Void>?
        var error: Handler<@Sendable (Spreadbot.ErrorEvent) -> Void>?
        var disconnected: Handler<@Sendable (RealtimeError?) -> Void>?
        /// The last error of a call, until there is a handler for it.
        var unreported: Spreadbot.ErrorEvent?
        /// The tasks that wait for the connection.
        var waiters: [UInt64: Waiter] = [:]
        var lastTicket: UInt64 = 0
        var mailbox: Mailbox<Spreadbot.Message>?
        /// The establishment to which the mailbox belongs.
        var mailboxEpoch: UInt64 = 0
        var isClosed = false
    }

    struct Waiter {
        var epoch: UInt64
        var continuation: CheckedContinuation<Void, any Error>
    }

    let state = Mutex(State())
    private let queues: HandlerQueues
    /// It retains this object and outlives every handler.
    private unowned let connection: SpreadbotConnection

    init(_ connection: SpreadbotConnection, _ config: Spreadbot.Configuration) {
        self.connection = connection
        queues = HandlerQueues(
            on: config.executor, config.maxBufferedMessages, config.maxBufferedBytes,
            loop: connection.loop
        ) { [weak connection] in try? connection?.resume() }
    }

    func addHandlers() {
        // Fails if the loop has ended; then no handler is called anyway.
        try? connection.setHandlers { handlers in
            handlers.open = { [self] in notifyOpen(Spreadbot.Transport($0), $1, $2) }
            handlers.error = { [self] failure in
                guard let handler = state.withLock({ $0.error }) else { return }
                let event = Spreadbot.ErrorEvent(failure)
                run(on: handler.isolation) { handler.call(event) }
            }
            handlers.disconnected = { [self] in notifyDisconnected($0) }
        }
    }

    /// Runs a handler on the actor to which it is isolated, otherwise on the user's executor.
    /// - Parameter isOwed: whether to run it even after the `Spreadbot` was released.
    func run(
        on isolation: (any Actor)?, count: Int = 0, isOwed: Bool = false,
        _ body: @escaping @Sendable () -> Void
    ) {
        let full = queues.run(on: isolation, count: count, isOwed: isOwed, body)
        guard let full else { return }
        try? connection.pause()
        // If the queue was emptied meanwhile, `resume` was called before there was a pause.
        if !full.isPaused { try? connection.resume() }
    }

    func setErrorHandler(_ handler: Handler<@Sendable (Spreadbot.ErrorEvent) -> Void>?) {
        let event = state.withLock { state in
            state.error = handler
            guard handler != nil else { return Spreadbot.ErrorEvent?.none }
            defer { state.unreported = nil }
            return state.unreported
        }
        guard let handler, let event else { return }
        run(on: handler.isolation) { handler.call(event) }
    }

    /// Reports the error of a call without `throws`; its handlers do not run inside the call.
    func report(_ error: RealtimeError) {
        Engine.Log.write(.error, error.message)
        let event = Spreadbot.ErrorEvent(error, isFatal: connection.state == .disconnected)
        try? connection.loop.post { [self] in
            let (errorHandler, disconnected) = state.withLock { state in
                if state.error == nil { state.unreported = event }
                return (state.error, event.isFatal ? state.disconnected : nil)
            }
            if let errorHandler { run(on: errorHandler.isolation) { errorHandler.call(event) } }
            if let disconnected { run(on: disconnected.isolation) { disconnected.call(error) } }
        }
    }

    private func notifyOpen(_ transport: Spreadbot.Transport, _ resumed: Bool, _ opened: Opened) {
        let epoch = connection.currentEpoch
        let (handler, waiters) = state.withLock { state in
            (state.open, SpreadbotDispatcher.take(&state.waiters, upTo: epoch))
        }
        for waiter in waiters { waiter.resume() }
        guard let handler else { return }
        run(on: handler.isolation) { handler.call(transport, resumed, opened) }
    }

    private func notifyDisconnected(_ error: RealtimeError?) {
        let epoch = connection.endedEpoch
        let (handler, waiters, mailbox) = state.withLock { state in
            // A mailbox of a later establishment waits for its own end.
            let mailbox = state.mailboxEpoch <= epoch ? state.mailbox : nil
            if mailbox != nil { state.mailbox = nil }
            return (
                state.disconnected, SpreadbotDispatcher.take(&state.waiters, upTo: epoch), mailbox
            )
        }
        for waiter in waiters { waiter.resume(throwing: error ?? SpreadbotDispatcher.closed) }
        mailbox?.finish(error.map { .failed($0) } ?? .normal)
        if let handler { run(on: handler.isolation) { handler.call(error) } }
    }

    private static func take(
        _ waiters: inout [UInt64: Waiter], upTo epoch: UInt64
    ) -> [CheckedContinuation<Void, any Error>] {
        let taken = waiters.filter { $0.value.epoch <= epoch }
        for ticket in taken.keys { waiters[ticket] = nil }
        return taken.values.map(\.continuation)
    }

    // MARK: Waiting tasks

    func newTicket() -> UInt64 {
        state.withLock { state in
            state.lastTicket += 1
            return state.lastTicket
        }
    }

    func wait(
        _ ticket: UInt64, for epoch: UInt64,
        _ continuation: CheckedContinuation<Void, any Error>
    ) {
        let isClosed = state.withLock { state in
            if !state.isClosed {
                state.waiters[ticket] = Waiter(epoch: epoch, continuation: continuation)
            }
            return state.isClosed
        }
        if isClosed { continuation.resume(throwing: SpreadbotDispatcher.closed) }
    }

    private static let closed = RealtimeError(.closed, "the connection was closed")

    /// Has no effect on a wait that has ended or never began.
    func stopWaiting(_ ticket: UInt64, _ error: any Error) {
        let waiter = state.withLock { $0.waiters.removeValue(forKey: ticket) }
        waiter?.continuation.resume(throwing: error)
    }

    /// Called when the connection is released. Of the callbacks still queued for the executor, only
    /// send completions still run.
    func close(_ loop: Loop) {
        queues.close()
        // After the send completions that the end of the connection causes.
        do {
            try loop.post { [queues] in queues.finish() }
        } catch {
            queues.finish()
        }
        // Released outside the lock, because the end of what handlers captured may call us.
        let old = state.withLock { exchange(&$0, with: State(isClosed: true)) }
        old.mailbox?.finish(.normal, discarding: true)
        for waiter in old.waiters.values {
            waiter.continuation.resume(throwing: SpreadbotDispatcher.closed)
        }
    }
}

extension Spreadbot.State {
    init(_ state: SpreadbotState) {
        self =
            switch state {
            case .connecting: .connecting
            case .connected: .connected
            case .disconnected: .disconnected
            }
    }
}
