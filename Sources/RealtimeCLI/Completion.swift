import Realtime
import Synchronization

/// The end of a command's work, which is told by a handler and awaited by the command.
final class Completion: Sendable {
    private enum State {
        case open
        case awaited(CheckedContinuation<Void, any Error>)
        case over(Result<Void, any Error>)
    }

    private let state = Mutex(State.open)

    /// The first end counts.
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

    /// For one who waits.
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
    /// Until its thread has done what it was asked for before: a process that ends does not wait.
    func settle() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            do {
                try post { continuation.resume() }
            } catch {
                continuation.resume()
            }
        }
    }
}
