import Synchronization

/// Handlers on their way from the loop's thread to an executor of the user's: bounded, first in,
/// first out, one at a time.
final class CallbackQueue: Sendable {
    struct Job: MailboxElement {
        let count: Int
        let isOwed: Bool
        let run: @Sendable () -> Void

        static var taken: Job { Job(count: 0, isOwed: false) {} }
    }

    private let mailbox: Mailbox<Job>
    private let gate = Gate()

    /// Apart, since the task that runs jobs must not hold the queue.
    private final class Gate: Sendable {
        let isClosed = Atomic<Bool>(false)

        func run(_ job: Job) {
            if job.isOwed || !isClosed.load(ordering: .acquiring) { job.run() }
        }
    }

    /// - Parameter onResume: called when there is room again.
    init(
        on executor: Spreadbot.Executor, _ maxMessages: Int, _ maxBytes: Int,
        onResume: @escaping @Sendable () -> Void
    ) {
        let mailbox = Mailbox<Job>(maxMessages, maxBytes)
        self.mailbox = mailbox
        switch executor {
        case .loop: break
        case .actor(let actor):
            Task { [gate] in await CallbackQueue.run(mailbox, gate, on: actor, onResume) }
        case .task(let executor):
            Task(executorPreference: executor) { [gate] in
                while let job = try? await mailbox.next(onResume: onResume) { gate.run(job) }
                // The preference alone does not keep it alive.
                withExtendedLifetime(executor) {}
            }
        }
    }

    private static func run(
        _ mailbox: Mailbox<Job>, _ gate: Gate, on actor: isolated any Actor,
        _ onResume: @Sendable () -> Void
    ) async {
        while let job = try? await mailbox.next(onResume: onResume) { gate.run(job) }
    }

    /// - Returns: whether the loop should deliver no more for now.
    func put(count: Int, isOwed: Bool, _ run: @escaping @Sendable () -> Void) -> Bool {
        mailbox.put(Job(count: count, isOwed: isOwed, run: run))
    }

    var isPaused: Bool { mailbox.isPaused }

    /// Only what is owed is run from here on.
    func close() { gate.isClosed.store(true, ordering: .releasing) }

    /// Nothing is put any more: the task ends behind what waits.
    func finish() { mailbox.finish(.normal) }

    deinit { finish() }
}
