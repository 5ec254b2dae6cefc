import CShims
import Glibc
import Session
import Synchronization
package import Wire

/// The loop of objects that are given none: one for all of them, on a thread of its own, from the
/// first to the last.
package enum OwnLoop {
    private struct State {
        var loop: Loop?
        /// Objects of it.
        var count = 0
        /// Threads of loops that came before, and end.
        var ending: [LoopThread] = []
        /// Of the process that the threads belong to.
        var forkGeneration: UInt32 = 0
        var waitsAtExit = false
    }

    private static let state = Mutex(State())
    /// How long the end of the process waits for a thread that ends; a callback may hold it up.
    private static let patience = Duration.milliseconds(500)

    /// For one object more, which calls `leave` when it is freed.
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

    /// For another object of this loop, if it is the library's own. That one calls `leave`, too.
    package static func join(_ loop: Loop) {
        state.withLock { if $0.loop === loop { $0.count += 1 } }
    }

    /// An object of this loop, if it is the library's own, was freed. After the last one the loop
    /// ends with its thread. Nothing waits for that: this thread may hold another loop, for which a
    /// callback of this one waits.
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
        // After a whole turn for what was asked of it before, such as a close frame.
        try? loop.post { try? loop.post { loop.close() } }
    }

    /// Gives back threads that are over.
    private static func joinEnded(_ state: inout State) {
        let generation = shim_fork_generation()
        // A child of the process has none of its threads.
        if state.forkGeneration != generation { state.ending = [] }
        state.forkGeneration = generation
        state.ending.removeAll { thread in
            guard thread.state.isOver.load(ordering: .acquiring) else { return false }
            shim_thread_join(thread.number)
            return true
        }
    }

    /// A process that has freed all it made ends with none of our threads in the middle of
    /// something: tools that look for leaks find nothing, and what others tear down is not in use.
    private static func waitAtExit() {
        let deadline = Loop.now() + patience
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
