import Realtime
import Synchronization

/// The end of a command's work: a handler reports it, and the command waits for it.
final class Completion: Sendable {
    private enum State {
        case open
        case awaited(CheckedContinuation<Void, any Error>)
        case over(Result<Void, any Error>)
    }

    private let state = Mutex(State.open)

    /// The command ends. What happens until then is not of interest, and must not be printed.
    var isOver: Bool {
        state.withLock { state in
            if case .over = state { true } else { false }
        }
    }

    /// Ends the wait. Only the first call counts.
    func end(_ error: (any Error)? = nil) {
        let result: Result<Void, any Error> = error.map { .failure($0) } ?? .success(())
        let waiting = state.withLock { state -> CheckedContinuation<Void, any Error>? in
            switch state {
            case .over: return nil
            case .open:
                state = .over(result)
                return nil
            case .awaited(let continuation):
                state = .over(result)
                return continuation
            }
        }
        waiting?.resume(with: result)
    }

    /// Waits for the end. Only one task may wait.
    func wait() async throws {
        try await withCheckedThrowingContinuation { continuation in
            let result = state.withLock { state -> Result<Void, any Error>? in
                if case .over(let result) = state { return result }
                state = .awaited(continuation)
                return nil
            }
            if let result { continuation.resume(with: result) }
        }
    }
}

extension Loop {
    /// Waits until the loop's thread has done its queued work, which the end of the process would
    /// discard. What it sends is written at the end of a turn, so this waits for a whole one.
    func settle() async {
        for _ in 1...2 { await nextTurn() }
    }

    private func nextTurn() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            do {
                try post { continuation.resume() }
            } catch {
                continuation.resume()
            }
        }
    }
}
