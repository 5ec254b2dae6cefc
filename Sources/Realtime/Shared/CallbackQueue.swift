internal import Engine
import Synchronization

/// A bounded queue of handler calls from the loop's thread to the user's executor. Calls run in
/// order, one at a time.
final class CallbackQueue: Sendable {
    struct Job: MailboxElement {
        let count: Int
        let isOwed: Bool
        let call: @Sendable () -> Void

        func run(_ gate: CallGate) { if isOwed { call() } else { gate.run(call) } }
    }

    private let mailbox: Mailbox<Job>
    /// A separate object, because the task that runs jobs must not retain the queue.
    private let gate = CallGate()

    /// - Parameters:
    ///   - loop: whose thread puts the calls; nil for any thread.
    ///   - onResume: called when there is room again.
    init(
        on executor: HandlerExecutor, _ maxMessages: Int, _ maxBytes: Int,
        loop: Engine.Loop? = nil, onResume: @escaping @Sendable () -> Void
    ) {
        let mailbox = Mailbox<Job>(maxMessages, maxBytes, on: loop)
        self.mailbox = mailbox
        switch executor {
        case .loop: break
        case .actor(let actor):
            Task { [gate] in
                var first = try? await mailbox.next(onResume: onResume)
                while first != nil {
                    await actor.run(&first, mailbox, gate, onResume)
                    first = try? await mailbox.next(onResume: onResume)
                }
            }
        case .task(let executor):
            Task(executorPreference: executor) { [gate] in
                while let job = try? await mailbox.next(onResume: onResume) { job.run(gate) }
                // The task's executor preference alone does not retain the executor.
                withExtendedLifetime(executor) {}
            }
        }
    }

    /// - Parameter isOwed: whether to run the call even after `close`.
    /// - Returns: whether the loop should stop delivering for now.
    func put(count: Int, isOwed: Bool, _ run: @escaping @Sendable () -> Void) -> Bool {
        mailbox.put(Job(count: count, isOwed: isOwed, call: run))
    }

    var isPaused: Bool { mailbox.isPaused }

    /// From here on only owed calls run.
    func close() { gate.close() }

    /// No call is added after this; the task ends after those that wait.
    func finish() { mailbox.finish(.normal) }

    deinit { finish() }
}

extension Actor {
    /// Runs a job, which is released here, and those that wait after it. A loop that is isolated
    /// to a parameter and awaits each job would be simpler, but in release builds of Swift 6.3 it
    /// does not return to the actor after a wait.
    fileprivate func run(
        _ first: inout CallbackQueue.Job?, _ mailbox: Mailbox<CallbackQueue.Job>, _ gate: CallGate,
        _ onResume: @Sendable () -> Void
    ) {
        first.take()?.run(gate)
        while let job = mailbox.takeNow(onResume: onResume) { job.run(gate) }
    }
}

/// Lets calls through until it is closed.
final class CallGate: Sendable {
    private let isClosed = Atomic<Bool>(false)

    func run(_ call: () -> Void) { if !isClosed.load(ordering: .acquiring) { call() } }

    func close() { isClosed.store(true, ordering: .releasing) }
}
