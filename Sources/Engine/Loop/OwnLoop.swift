import CShims
import Glibc
import Session
import Synchronization
package import Wire

/// The library's own loop, for objects created without one. They share it; it has its own thread
/// and exists from the first such object until the last is freed.
package enum OwnLoop {
    private struct State {
        var loop: Loop?
        /// How many objects use the loop.
        var count = 0
        /// Threads of earlier loops that have yet to end.
        var ending: [LoopThread] = []
        /// The fork generation of the process that the threads belong to.
        var forkGeneration: UInt32 = 0
        var waitsAtExit = false
    }

    private static let state = Mutex(State())
    /// How long process exit waits for these threads; a callback may delay their end.
    private static let exitTimeout = Duration.milliseconds(500)

    /// Returns the loop, for one more object, which must call `leave` when it is freed.
    package static func join() throws(RealtimeError) -> Loop {
        try state.withLock { state throws(RealtimeError) in
            if let current = state.loop, !current.isForked {
                state.count += 1
                return current
            }
            joinEnded(&state)
            let made = try Loop()
            do throws(RealtimeError) {
                try made.start()
            } catch {
                made.close()
                throw error
            }
            (state.loop, state.count) = (made, 1)
            if !state.waitsAtExit { state.waitsAtExit = atexit { OwnLoop.waitAtExit() } == 0 }
            return made
        }
    }

    /// Counts another object of this loop, if it is the library's own. It must call `leave`, too.
    package static func join(_ loop: Loop) {
        state.withLock { if $0.loop === loop { $0.count += 1 } }
    }

    /// Call when an object of this loop was freed; does nothing if it is not the library's own.
    /// After the last object the loop and its thread end. This call does not wait for that: a
    /// callback of this loop may be waiting for another loop that the current thread owns.
    package static func leave(_ loop: Loop) {
        let isLast = state.withLock { state in
            guard let current = state.loop, current === loop else { return false }
            state.count -= 1
            guard state.count == 0 else { return false }
            state.loop = nil
            if !loop.isForked, let thread = loop.takeThread() { state.ending.append(thread) }
            return true
        }
        guard isLast else { return }
        // Closes after one whole turn, in which requested work such as a close frame is completed.
        try? loop.post { try? loop.post { loop.close() } }
    }

    /// Joins the threads that have ended.
    private static func joinEnded(_ state: inout State) {
        let generation = shim_fork_generation()
        // A forked child does not have its parent's threads.
        if state.forkGeneration != generation { state.ending = [] }
        state.forkGeneration = generation
        state.ending.removeAll { thread in
            guard thread.state.isOver.load(ordering: .acquiring) else { return false }
            shim_thread_join(thread.number)
            return true
        }
    }

    /// Waits until our threads have ended, so that a process that freed everything does not exit
    /// while one still runs. Then leak checkers find nothing, and other exit handlers tear down
    /// nothing in use.
    private static func waitAtExit() {
        let deadline = Loop.now() + exitTimeout
        var isWaiting = true
        while isWaiting {
            isWaiting = state.withLock { state in
                joinEnded(&state)
                return state.ending.contains { thread in
                    thread.state.thread.load(ordering: .acquiring) != shim_thread_self()
                }
            }
            if isWaiting { usleep(200) }
            if Loop.now() >= deadline { return }
        }
    }
}
