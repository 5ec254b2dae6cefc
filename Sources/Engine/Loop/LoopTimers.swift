import CShims
package import Session

extension Loop {
    /// Now, on the monotonic clock.
    package static func now() -> Instant { Instant(nanoseconds: shim_monotonic_nanoseconds()) }
}

/// The timers of a loop: its own objects' and its callers'.
///
/// Those of its own are mostly limits: something did not come in time. What has come is in time,
/// however long the loop takes to look at it. So while sockets, or exchanges that were held up,
/// wait for their turn, such a timer fires only after those that waited when it was due. Callers'
/// timers do not wait.
struct LoopTimers {
    private var own = TimerHeap()
    private var callers = TimerHeap()
    /// What must be looked at before timers that were due at `time` fire.
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

    /// Up to when timers of the loop's own may have been due to fire now.
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

    /// Takes the earliest timer that is due out, and returns its target.
    /// - Parameter limit: up to when one of the loop's own may have been due.
    mutating func popDue(_ now: Instant, ownUntil limit: Instant) -> (any TimerTarget)? {
        let first = own.earliest
        if let first, first <= limit, callers.earliest.map({ first <= $0 }) ?? true {
            return own.popDue(limit)
        }
        return callers.popDue(now) ?? own.popDue(limit)
    }
}
