internal import Engine

/// Calls the handlers of an event source, a long poll or a Meteor client where they belong, and
/// pauses receiving while too many calls wait.
final class SourceDispatcher: Sendable {
    private let queues: HandlerQueues
    private let pause: @Sendable () -> Void
    private let resumeSource: @Sendable () -> Void

    /// - Parameters:
    ///   - pause: stops receiving.
    ///   - resume: continues to receive, unless something else forbids it.
    init(
        on executor: HandlerExecutor, _ maxMessages: Int, _ maxBytes: Int, loop: Engine.Loop,
        pause: @escaping @Sendable () -> Void, resume: @escaping @Sendable () -> Void
    ) {
        self.pause = pause
        resumeSource = resume
        queues = HandlerQueues(on: executor, maxMessages, maxBytes, loop: loop, onResume: resume)
    }

    /// Runs a handler on the actor to which it is isolated, otherwise on the user's executor.
    /// - Parameters:
    ///   - count: its size in bytes; not evaluated for a handler that runs on the loop.
    ///   - gate: the handler's own; nil if it ends only with the object.
    func run(
        on isolation: (any Actor)?, count: @autoclosure () -> Int = 0, gate: CallGate? = nil,
        _ body: @escaping @Sendable () -> Void
    ) {
        let body = gate.map { gate in { @Sendable in gate.run(body) } } ?? body
        guard let full = queues.run(on: isolation, count: count(), body) else { return }
        pause()
        // If the queue was emptied meanwhile, `resume` was called before there was a pause.
        if !full.isPaused { resume() }
    }

    /// Continues to receive, unless too many calls wait.
    func resume() { if !queues.isPaused { resumeSource() } }

    /// No handler begins after this.
    func close() { queues.close() }
}
