public import Dispatch
public import Realtime

extension HandlerExecutor {
    /// Handlers run on a dispatch queue, one at a time even if the queue is concurrent.
    public static func queue(_ queue: DispatchQueue) -> Self { .task(QueueExecutor(queue)) }
}

private final class QueueExecutor: TaskExecutor {
    private let queue: DispatchQueue

    init(_ queue: DispatchQueue) { self.queue = queue }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
