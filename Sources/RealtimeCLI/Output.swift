import Glibc
import Realtime
import Synchronization

/// Standard output. Lines are collected while the loop handles what has arrived, and written
/// together, with one system call. A reader that is too slow blocks the loop, which slows the peer
/// down.
enum Output {
    private struct State {
        var waiting: [UInt8] = []
        /// The loop will write it.
        var isDue = false
        /// When the last byte was written.
        var writtenAt = ContinuousClock.now
    }

    private static let state = Mutex(State())
    /// Held during a write, so that the bytes stay in their order.
    private static let writing = Mutex(())
    private static let limit = 64 << 10

    /// Writes bytes at the end of the loop's turn, or now if many are waiting.
    static func add(_ bytes: [UInt8]) {
        let (isFull, isFirst) = state.withLock { state in
            state.waiting += bytes
            defer { state.isDue = true }
            return (state.waiting.count >= limit, !state.isDue)
        }
        if isFull { return flush() }
        guard isFirst else { return }
        do {
            try Loop.shared.post { flush() }
        } catch {
            flush()
        }
    }

    /// Writes bytes now, after those that wait.
    static func write(_ bytes: [UInt8]) {
        flush()
        writing.withLock { _ in Console.write(bytes, to: STDOUT_FILENO) }
    }

    /// Writes what waits. Called before anything is written elsewhere, and at the end.
    static func flush() {
        writing.withLock { _ in
            let bytes = state.withLock { state in
                defer { state.waiting = [] }
                // Those that come from now on need another write.
                state.isDue = false
                return state.waiting
            }
            guard !bytes.isEmpty else { return }
            Console.write(bytes, to: STDOUT_FILENO)
            state.withLock { $0.writtenAt = .now }
        }
    }

    /// Whether something waits or is being written, and since when nothing does.
    static var progress: (isBusy: Bool, writtenAt: ContinuousClock.Instant) {
        let (isEmpty, writtenAt) = state.withLock { ($0.waiting.isEmpty, $0.writtenAt) }
        return (!isEmpty || Blocked.isAny, writtenAt)
    }
}

/// System calls that wait for another program, such as the reader of a full pipe.
enum Blocked {
    private struct State {
        var calls: [Int: ContinuousClock.Instant] = [:]
        var last = 0
    }

    private static let state = Mutex(State())

    /// Makes a system call that may block.
    static func during<Result>(_ call: () -> Result) -> Result {
        let number = state.withLock { state in
            state.last += 1
            state.calls[state.last] = .now
            return state.last
        }
        defer { state.withLock { _ = $0.calls.removeValue(forKey: number) } }
        return call()
    }

    static var isAny: Bool { state.withLock { !$0.calls.isEmpty } }

    /// For how long a call has been blocked, at most since this time.
    static func time(since start: ContinuousClock.Instant) -> Duration {
        guard let first = state.withLock({ $0.calls.values.min() }) else { return .zero }
        return ContinuousClock.now - max(first, start)
    }
}
