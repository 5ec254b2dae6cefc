import Session

/// Is called by a loop at a given time.
protocol TimerTarget: AnyObject {
    /// Runs on the loop's thread. `now` is the requested time or later.
    func timeReached(_ now: Instant)
}

/// One timer: at most one pending call for its target, which it retains only while it is armed.
final class LoopTimer {
    @exclusivity(unchecked) fileprivate(set) var deadline = Instant(nanoseconds: 0)
    @exclusivity(unchecked) fileprivate var index = -1
    @exclusivity(unchecked) fileprivate var target: (any TimerTarget)?

    /// True for a timer of the library's caller, false for one of the library's objects.
    let isCallers: Bool

    init(isCallers: Bool = false) { self.isCallers = isCallers }

    var isArmed: Bool { index >= 0 }
}

/// A binary heap of timers, earliest first. Each timer knows its index, so moving or removing one
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

    /// Removes the earliest timer if it is due, and returns its target.
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
