import Session

/// Something that wants to be called at a time.
protocol TimerTarget: AnyObject {
    /// Runs on the loop's thread; `now` is at or after the time asked for.
    func timeReached(_ now: Instant)
}

/// One place in the heap: at most one pending call for its target. It holds its target only while
/// it is armed.
final class LoopTimer {
    @exclusivity(unchecked) fileprivate(set) var deadline = Instant(nanoseconds: 0)
    @exclusivity(unchecked) fileprivate var index = -1
    @exclusivity(unchecked) fileprivate var target: (any TimerTarget)?

    /// Of a caller of the library, not of one of its objects.
    let isCallers: Bool

    init(isCallers: Bool = false) { self.isCallers = isCallers }

    var isArmed: Bool { index >= 0 }
}

/// A binary heap of timers, earliest first; each knows its place, so that moving and removing one
/// costs O(log n).
struct TimerHeap {
    private var timers: [LoopTimer] = []

    var earliest: Instant? { timers.first?.deadline }

    mutating func arm(_ timer: LoopTimer, _ target: any TimerTarget, at deadline: Instant) {
        timer.target = target
        if timer.isArmed {
            timer.deadline = deadline
            settle(timer.index)
        } else {
            timer.deadline = deadline
            timer.index = timers.count
            timers.append(timer)
            siftUp(timer.index)
        }
    }

    mutating func disarm(_ timer: LoopTimer) {
        guard timer.isArmed else { return }
        let index = timer.index
        let last = timers.removeLast()
        if last !== timer {
            place(last, at: index)
            settle(index)
        }
        timer.index = -1
        timer.target = nil
    }

    /// Takes the earliest timer out when it is due, and returns its target.
    mutating func popDue(_ now: Instant) -> (any TimerTarget)? {
        guard let first = timers.first, first.deadline <= now else { return nil }
        let target = first.target
        disarm(first)
        return target
    }

    mutating func removeAll() {
        for timer in timers {
            timer.index = -1
            timer.target = nil
        }
        timers = []
    }

    private mutating func place(_ timer: LoopTimer, at index: Int) {
        timers[index] = timer
        timer.index = index
    }

    private mutating func settle(_ index: Int) {
        siftUp(index)
        siftDown(index)
    }

    private mutating func siftUp(_ start: Int) {
        var index = start
        let timer = timers[index]
        while index > 0 {
            let parent = (index - 1) / 2
            guard timer.deadline < timers[parent].deadline else { break }
            place(timers[parent], at: index)
            index = parent
        }
        place(timer, at: index)
    }

    private mutating func siftDown(_ start: Int) {
        var index = start
        let timer = timers[index]
        while true {
            var child = 2 * index + 1
            guard child < timers.count else { break }
            if child + 1 < timers.count, timers[child + 1].deadline < timers[child].deadline {
                child += 1
            }
            guard timers[child].deadline < timer.deadline else { break }
            place(timers[child], at: index)
            index = child
        }
        place(timer, at: index)
    }
}
