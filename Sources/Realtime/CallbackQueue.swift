import Synchronization

/// Handlers on their way from the loop's thread to an executor of the user's: bounded, first in,
/// first out, one at a time.
final class CallbackQueue: Sendable {
    struct Job: MailboxElement {
        let count: Int
        let run: @Sendable () -> Void

        static var taken: Job { Job(count: 0) {} }
    }

    private let mailbox: Mailbox<Job>

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
            Task { await CallbackQueue.run(mailbox, on: actor, onResume) }
        case .task(let executor):
            Task(executorPreference: executor) {
                while let job = try? await mailbox.next(onResume: onResume) { job.run() }
                // The preference alone does not keep it alive.
                withExtendedLifetime(executor) {}
            }
        }
    }

    private static func run(
        _ mailbox: Mailbox<Job>, on actor: isolated any Actor, _ onResume: @Sendable () -> Void
    ) async {
        while let job = try? await mailbox.next(onResume: onResume) { job.run() }
    }

    /// - Returns: whether the loop should deliver no more for now.
    func put(count: Int, _ run: @escaping @Sendable () -> Void) -> Bool {
        mailbox.put(Job(count: count, run: run))
    }

    var isPaused: Bool { mailbox.isPaused }

    func close() { mailbox.finish(.normal, discarding: true) }
}
