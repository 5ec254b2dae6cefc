import CShims
package import Session

extension Loop {
    /// The current time on the monotonic clock.
    package static func now() -> Instant { Instant(nanoseconds: shim_monotonic_nanoseconds()) }
}

/// The timers of a loop: those of its objects, and those of callers.
///
/// Objects mostly use timers as time limits for something that should arrive. What has arrived is
/// in time, however long the loop takes to handle it. So such a timer does not fire while sockets
/// or held-up exchanges that were waiting when it was due have yet to be handled. Callers' timers
/// do not wait.
struct LoopTimers {
    private var own = TimerHeap()
    private var callers = TimerHeap()
    /// What must be handled before objects' timers that were due at `time` fire.
    private var barrier: (start: ReadyProgress, time: Instant)?

    var earliest: Instant? {
        guard let first = own.earliest else { return callers.earliest }
        return callers.earliest.map { min($0, first) } ?? first
    }

    mutating func arm(_ timer: LoopTimer, _ target: any TimerTarget, at deadline: Instant) {
        if timer.isCallers {
            callers.arm(timer, target, at: deadline)
        } else {
            own.arm(timer, target, at: deadline)
        }
    }

    mutating func disarm(_ timer: LoopTimer) {
        if timer.isCallers { callers.disarm(timer) } else { own.disarm(timer) }
    }

    mutating func removeAll() {
        own.removeAll()
        callers.removeAll()
    }

    /// Objects' timers with a deadline up to this time may fire now.
    mutating func limit(at now: Instant, _ progress: ReadyProgress?) -> Instant {
        guard let progress, !progress.isComplete else {
            barrier = nil
            return now
        }
        guard let (start, time) = barrier else {
            barrier = (progress, now)
            return Instant(nanoseconds: 0)
        }
        guard progress.hasPassed(start) else { return Instant(nanoseconds: 0) }
        barrier = nil
        return time
    }

    /// Removes the earliest timer that is due, and returns its target.
    /// - Parameter limit: the latest deadline at which an object's timer may fire.
    mutating func popDue(_ now: Instant, ownUntil limit: Instant) -> (any TimerTarget)? {
        let first = own.earliest
        if let first, first <= limit, callers.earliest.map({ first <= $0 }) ?? true {
            return own.popDue(limit)
        }
        return callers.popDue(now) ?? own.popDue(limit)
    }
}
