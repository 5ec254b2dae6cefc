import Synchronization

/// Lets one task wait until a condition holds, such as "connected".
final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    func setOpen(_ isOpen: Bool) {
        let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.isOpen = isOpen
            guard isOpen else { return nil }
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume()
    }

    /// Waits until the gate is open. Only one task may wait.
    func wait() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting = continuation }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }
}
