package import Session
import Synchronization
import Wire

/// Reports once when all calls of a batch of writes are completed: a failure if one has failed. If
/// the client ends before, it reports nothing.
///
/// Unchecked because `state` has a lock, and `ended` is called once.
package final class DDPWritesEnd: @unchecked Sendable {
    private struct State {
        var made = 0
        var completed = 0
        var failure: DDPError?
    }

    private let ended: (DDPStubOutcome) -> Void
    private let state = Mutex(State())

    package init(_ ended: @escaping (DDPStubOutcome) -> Void) { self.ended = ended }

    /// The handlers of all calls are released.
    deinit {
        let state = state.withLock { $0 }
        guard state.completed == state.made else { return }
        ended(state.failure.map { .failure($0) } ?? .success(.null))
    }

    /// Adds a call with these handlers.
    package func add(to handlers: inout DDPCallHandlers) {
        state.withLock { $0.made += 1 }
        let handler = handlers.completed
        handlers.completed = { [self] outcome in
            handler?(outcome)
            state.withLock { state in
                state.completed += 1
                if case .failure(let error) = outcome { state.failure = state.failure ?? error }
            }
        }
    }
}
