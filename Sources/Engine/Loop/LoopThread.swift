import CShims
import Glibc
import Synchronization
package import Wire

/// A loop's own thread.
struct LoopThread: Sendable {
    let number: UInt
    let state: LoopThreadState
}

/// State shared by the thread and the threads that wait for its end.
final class LoopThreadState: Sendable {
    /// Separate from `stopRequested`, which a `run` on another thread may consume before this one
    /// begins.
    let mustEnd = Atomic<Bool>(false)
    /// The thread has left the loop, and the program's hook has returned.
    let isOver = Atomic<Bool>(false)
    /// The thread's own number from `shim_thread_self`; 0 until it runs.
    let thread = Atomic<UInt>(0)
}

extension Loop {
    /// Makes `run` return after the current turn. Any thread.
    package func stop() throws(RealtimeError) {
        if requestStop() != nil { try checkUsable() }
    }

    /// Like `stop`, but also allowed in a signal handler: it takes no lock, allocates nothing and
    /// preserves errno. So it returns a code instead of throwing an error with a text.
    package func requestStop() -> RealtimeError.Code? {
        if isForked { return .forked }
        if isClosed.load(ordering: .acquiring) { return .closed }
        stopRequested.store(true, ordering: .releasing)
        wake()
        return nil
    }

    /// Runs the loop on a thread of its own. Any thread.
    package func start() throws(RealtimeError) {
        try checkUsable()
        guard owner.load(ordering: .acquiring) & 1 == 0 else {
            throw RealtimeError(.busy, "the loop is run already")
        }
        // Only one thread may join the loop's thread. This call must not wait either, because it
        // may run in a callback of the very thread that is being joined.
        let outcome = joining.withLockIfAvailable { _ in thread.withLock { startThread(&$0) } }
        guard let failure = outcome else {
            throw RealtimeError(.busy, "another thread waits for the end of the loop's thread")
        }
        if let failure { throw failure }
    }

    private func startThread(_ current: inout LoopThread?) -> RealtimeError? {
        if let old = current {
            // A thread that was stopped without waiting may have ended by now.
            guard old.state.isOver.load(ordering: .acquiring) else {
                return RealtimeError(.busy, "the loop has a thread already")
            }
            shim_thread_join(old.number)
            current = nil
        }
        stopRequested.store(false, ordering: .releasing)
        let state = LoopThreadState()
        var number: UInt = 0
        let code = LibraryThread.start(
            "realtime-loop", &number, { [self] in runThread(state) },
            ended: { state.isOver.store(true, ordering: .releasing) })
        guard code == 0 else { return Loop.systemError("starting the loop's thread", code) }
        current = LoopThread(number: number, state: state)
        return nil
    }

    private func runThread(_ state: LoopThreadState) {
        state.thread.store(shim_thread_self(), ordering: .releasing)
        do throws(RealtimeError) {
            try run(as: state)
        } catch {
            if error.code != .closed { Log.write(.error, "the loop's thread ended: \(error)") }
        }
    }

    /// Stops the loop's thread and waits until it has ended.
    package func stopAndWait() throws(RealtimeError) {
        try checkUsable()
        if isOwner {
            throw RealtimeError(.reentrant, "a callback of this loop cannot wait for its end")
        }
        try Loop.checkMayRun()
        // A second caller waits here until the first has joined the thread.
        joining.withLock { _ in
            guard let current = thread.withLock({ $0 }) else { return }
            current.state.mustEnd.store(true, ordering: .releasing)
            wake()
            shim_thread_join(current.number)
            thread.withLock { $0 = nil }
        }
    }

    /// The loop is being freed; its thread ends by itself.
    func detachThread() {
        if let old = takeThread() { shim_thread_detach(old.number) }
    }

    /// Removes and returns the loop's thread, which the caller must join or detach.
    func takeThread() -> LoopThread? {
        thread.withLock { exchange(&$0, with: nil) }
    }
}
