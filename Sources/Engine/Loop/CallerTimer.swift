import Session
import Synchronization
package import Wire

/// The timers that the library's callers set, found by id from any thread.
struct CallerTimers {
    private var byID: [UInt64: CallerTimer] = [:]
    private var lastID: UInt64 = 0

    mutating func add(_ timer: CallerTimer) -> UInt64 {
        lastID += 1
        timer.id = lastID
        byID[lastID] = timer
        return lastID
    }

    func contains(_ id: UInt64) -> Bool { byID[id] != nil }

    mutating func remove(_ id: UInt64) -> CallerTimer? { byID.removeValue(forKey: id) }

    mutating func removeAll() -> [CallerTimer] {
        defer { byID = [:] }
        return Array(byID.values)
    }
}

/// A timer that the library's caller set, once or repeated.
///
/// Unchecked because its fields are set before it is shared, and then only the loop's owner touches
/// them. The table of ids has its own lock.
final class CallerTimer: TimerTarget, @unchecked Sendable {
    fileprivate(set) var id: UInt64 = 0
    private let interval: Duration
    private let fire: () -> Void
    /// The loop retains its timers.
    private unowned(unsafe) let loop: Loop
    let timer = LoopTimer(isCallers: true)
    private var deadline: Instant

    init(_ loop: Loop, deadline: Instant, interval: Duration, fire: @escaping () -> Void) {
        self.loop = loop
        self.deadline = deadline
        self.interval = interval
        self.fire = fire
    }

    func arm() { loop.arm(timer, self, at: deadline) }

    func timeReached(_ now: Instant) {
        let isDue = loop.callerTimers.withLock { timers in
            interval > .zero ? timers.contains(id) : timers.remove(id) != nil
        }
        guard isDue else { return }
        fire()
        guard interval > .zero, loop.callerTimers.withLock({ $0.contains(id) }) else { return }
        // Stays in step with the first deadline; missed turns are not made up for.
        deadline = deadline + interval
        if deadline <= now { deadline = now + interval }
        arm()
    }
}

extension Loop {
    /// Calls `fire` once after `delay`, and then every `interval` unless that is zero. Any thread.
    package func addTimer(
        after delay: Duration, every interval: Duration, _ fire: @escaping () -> Void
    ) throws(RealtimeError) -> UInt64 {
        try checkUsable()
        let timer = CallerTimer(
            self, deadline: Loop.now() + delay, interval: interval, fire: fire)
        let id = callerTimers.withLock { $0.add(timer) }
        perform { [self] in
            // The timer may have been cancelled while this job was queued.
            if callerTimers.withLock({ $0.contains(id) }) { timer.arm() }
        }
        return id
    }

    /// Cancels a timer that has not yet fired for the last time. Any thread.
    package func cancelTimer(_ id: UInt64) throws(RealtimeError) {
        try checkUsable()
        guard let timer = callerTimers.withLock({ $0.remove(id) }) else {
            throw RealtimeError(.notFound, "no timer has the id \(id): it fired or was cancelled")
        }
        perform { [self] in disarm(timer.timer) }
    }
}
