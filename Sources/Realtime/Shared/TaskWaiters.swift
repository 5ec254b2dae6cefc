import Synchronization

/// Tasks that wait for the same event.
final class TaskWaiters: Sendable {
    private struct State {
        var lastTicket: UInt64 = 0
        var waiting: [UInt64: CheckedContinuation<Void, any Error>] = [:]
    }

    private let state = Mutex(State())

    /// Waits for `resumeAll`.
    /// - Parameter begin: called once the task can be resumed; a result ends the wait at once.
    /// - Throws: the error of the result; `CancellationError`.
    func wait(_ begin: () -> Result<Void, any Error>?) async throws {
        let ticket = state.withLock { state in
            state.lastTicket += 1
            return state.lastTicket
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                state.withLock { $0.waiting[ticket] = continuation }
                if let result = begin() { resume(ticket, result) }
                // The task may have been cancelled before it waited.
                if Task.isCancelled { resume(ticket, .failure(CancellationError())) }
            }
        } onCancel: {
            resume(ticket, .failure(CancellationError()))
        }
    }

    private func resume(_ ticket: UInt64, _ result: Result<Void, any Error>) {
        state.withLock { $0.waiting.removeValue(forKey: ticket) }?.resume(with: result)
    }

    func resumeAll(_ result: Result<Void, any Error>) {
        let waiting = state.withLock { exchange(&$0.waiting, with: [:]) }
        for continuation in waiting.values { continuation.resume(with: result) }
    }
}
