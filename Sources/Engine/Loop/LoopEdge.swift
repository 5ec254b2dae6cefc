import CShims
import Synchronization

// Hosts that watch the descriptor edge-triggered (Go's netpoll, mio, Tokio) learn when it becomes
// readable, not that it still is. So a turn that leaves work must make it readable anew. What
// becomes ready after the turn's `epoll_wait` does so by itself, and so do jobs and timers. What
// that call reported, or left out, does not: sources tell by `noteDrained` that nothing is left of
// it. After a turn without doubts, which is the usual one, this costs nothing.
extension Loop {
    /// The descriptor, for a host that watches it.
    package var hostDescriptor: Int32 {
        isHosted.store(true, ordering: .relaxed)
        return descriptor
    }

    /// Owner only: makes the descriptor readable anew if something is ready.
    func renewEdgeIfReady() {
        guard isHosted.load(ordering: .relaxed) else { return }
        mayBeReady = false
        if shim_is_readable(descriptor) { renewEdge() }
    }

    private func renewEdge() {
        // Signals in any case: an earlier signal may be one that the host has used up.
        wakePending.store(true, ordering: .sequentiallyConsistent)
        shim_eventfd_signal(wakeDescriptor)
    }

    /// A host's thread could not dispatch because another one does, which may have begun before the
    /// work came. Its end makes the descriptor readable anew.
    func missDispatch() {
        missedDispatch.store(true, ordering: .sequentiallyConsistent)
        if owner.load(ordering: .sequentiallyConsistent) == 0 { repeatMissedDispatch() }
    }

    /// Call when the claim was given up. Both sides are sequentially consistent, so one of them
    /// sees the other.
    func repeatMissedDispatch() {
        guard missedDispatch.load(ordering: .sequentiallyConsistent),
            missedDispatch.exchange(false, ordering: .sequentiallyConsistent)
        else { return }
        renewEdge()
    }
}
