import CShims
import Glibc
import Session
import Synchronization
package import Wire

/// Work that another thread queued.
///
/// Unchecked because it crosses threads exactly once, through the loop's queue.
struct Job: @unchecked Sendable {
    let run: () -> Void
}

// The claim on the loop. `owner` is 0 or the number of the thread that holds the claim. Its lowest
// bit is set while that thread dispatches (thread numbers are addresses, so the bit is free).
extension Loop {
    /// How a call gets access to the loop.
    enum Entry {
        /// This thread already has the claim: the call comes from a callback.
        case inside
        /// The loop was idle, and this thread has claimed it; `endCall` releases it.
        case claimed
        /// Another thread has the claim, or queued jobs must run first. Post a job instead.
        case elsewhere
    }

    private static let dispatching: UInt = 1

    var isOwner: Bool { owner.load(ordering: .relaxed) & ~Loop.dispatching == shim_thread_self() }

    /// True while the owner dispatches, so that this may be inside a callback.
    var isDispatching: Bool { owner.load(ordering: .relaxed) & Loop.dispatching != 0 }

    func enter() -> Entry {
        if isOwner { return .inside }
        // Jobs queued before this call must run first, or one thread's sends would overtake each
        // other.
        guard jobCount.load(ordering: .acquiring) == 0, !shim_is_in_locked_function() else {
            return .elsewhere
        }
        let free = owner.compareExchange(
            expected: 0, desired: shim_thread_self(), ordering: .acquiring)
        guard free.exchanged else { return .elsewhere }
        shim_acquired(address)
        return .claimed
    }

    func endCall() {
        settle()
        releaseClaim()
        repeatMissedDispatch()
        // If `close` ran after this call last checked `isClosed`, it found the loop claimed and
        // left the teardown to us. Both sides are sequentially consistent, so one of them sees the
        // other.
        if isClosed.load(ordering: .sequentiallyConsistent) { finishClosing() }
    }

    func releaseClaim() {
        shim_releases(address)
        owner.store(0, ordering: .sequentiallyConsistent)
    }

    /// For valgrind, which does not see that the claim is a lock.
    private var address: UnsafeRawPointer {
        UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
    }

    /// Claims the loop for a call that cannot be posted. Waits for other threads' short calls.
    /// Returns false while a thread dispatches.
    func claimForCall() -> Bool { claim(shim_thread_self()) }

    private func claim(_ desired: UInt) -> Bool {
        while true {
            let (claimed, current) = owner.compareExchange(
                expected: 0, desired: desired, ordering: .sequentiallyConsistent)
            if claimed {
                shim_acquired(address)
                return true
            }
            if current & Loop.dispatching != 0 || current == shim_thread_self() { return false }
            // Another thread makes a short call, which ends in a moment.
            sched_yield()
        }
    }

    func beginDispatch() throws(RealtimeError) {
        try checkUsable()
        if isOwner {
            throw RealtimeError(
                .reentrant, "a callback of this loop cannot dispatch, run or wait for it")
        }
        try Loop.checkMayRun()
        guard claim(shim_thread_self() | Loop.dispatching) else {
            missDispatch()
            throw RealtimeError(.busy, "another thread is running this loop")
        }
    }

    func endDispatch() { endCall() }

    /// - Throws: `.reentrant` in a stub: it has a lock that the loop's work needs.
    static func checkMayRun() throws(RealtimeError) {
        if shim_is_in_locked_function() {
            throw RealtimeError(.reentrant, "a stub cannot dispatch, run or wait for a loop")
        }
    }

    /// Checks that this thread may wait for an object of this loop.
    package func checkMayWait() throws(RealtimeError) {
        try checkNotForked()
        if isOwner {
            throw RealtimeError(.reentrant, "a callback cannot wait for an object of its own loop")
        }
        try Loop.checkMayRun()
    }

    /// Runs `work` as the loop's owner: at once if this thread can claim the loop, otherwise in the
    /// next turn.
    func perform(_ work: @escaping () -> Void) {
        switch enter() {
        case .inside: work()
        case .claimed:
            // Another thread may have freed the loop after the caller checked. Work that starts now
            // would never end, and would keep itself and the loop alive.
            if !isTornDown { work() }
            endCall()
        case .elsewhere: enqueue(work)
        }
    }

    /// Runs `job` on the loop's thread in the next turn. Jobs run in the order posted. Any thread.
    package func post(_ job: @escaping () -> Void) throws(RealtimeError) {
        try checkUsable()
        enqueue(job)
    }

    func enqueue(_ job: @escaping () -> Void) {
        let job = Job(run: job)
        jobs.withLock { queue in
            // After `close` nothing would remove it from the queue.
            if isClosed.load(ordering: .acquiring) { return }
            queue.append(job)
            jobCount.add(1, ordering: .releasing)
        }
        wake()
    }
}
