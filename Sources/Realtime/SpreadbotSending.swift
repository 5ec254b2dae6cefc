internal import Engine
import Synchronization
import Wire

extension SpreadbotSent {
    var outcome: Result<Void, RealtimeError> { error.map { .failure($0) } ?? .success(()) }
}

extension SpreadbotConnection {
    /// Sends with `begin` and waits for the result. If the task is cancelled before the send has
    /// begun, it is not sent.
    /// - Throws: the error of `begin`; `CancellationError`.
    func sending(
        _ begin: (
            _ assigned: (UInt64) -> Void, _ done: @escaping (SpreadbotSent) -> Void
        ) throws -> Void
    ) async throws -> SpreadbotSent {
        let number = Mutex<UInt64?>(nil)
        let sent = try await withTaskCancellationHandler {
            try Task.checkCancellation()
            return try await withCheckedThrowingContinuation {
                (continuation: CheckedContinuation<SpreadbotSent, any Error>) in
                do {
                    try begin({ assigned in number.withLock { $0 = assigned } }) {
                        continuation.resume(returning: $0)
                    }
                } catch {
                    continuation.resume(throwing: error)
                }
                // The task may have been cancelled before the send had a number.
                if Task.isCancelled { cancel(number) }
            }
        } onCancel: {
            cancel(number)
        }
        if sent.error?.code == .cancelled, Task.isCancelled { throw CancellationError() }
        return sent
    }

    private func cancel(_ number: borrowing Mutex<UInt64?>) {
        if let number = number.withLock({ $0 }) { try? cancel(number) }
    }
}
