package import Session

/// Everything of one run: the virtual clock, the future events, the source of randomness, the
/// trace, and the first violated invariant. One thread, no other clock, no I/O: the same seed is
/// the same run.
package final class World {
    package let seed: UInt64
    package private(set) var now: Instant
    package var random: Random
    /// Why the run failed.
    package private(set) var violation: String?
    /// How often each situation occurred, to check that the seeds reach all of them.
    package private(set) var tally: [String: Int] = [:]

    private let start: Instant
    private let print: ((String) -> Void)?
    private var queue: [Event] = []
    private var eventCount: UInt64 = 0

    /// More events than any correct run has: something loops.
    private static let maximumEvents = 400_000

    private struct Event {
        var time: Instant
        var order: UInt64
        var alarm: Alarm

        static func < (a: Event, b: Event) -> Bool {
            (a.time, a.order) < (b.time, b.order)
        }
    }

    /// A future event, which can be cancelled.
    package final class Alarm {
        fileprivate var action: (() -> Void)?

        fileprivate init(_ action: @escaping () -> Void) { self.action = action }

        package func cancel() { action = nil }
    }

    /// - Parameter print: where the trace goes; without it the trace costs nothing.
    package init(seed: UInt64, print: ((String) -> Void)? = nil) {
        self.seed = seed
        self.print = print
        random = Random(seed: seed)
        // Not near 0, where a wrong subtraction would hide behind a clamp.
        start = Instant(nanoseconds: 3_600_000_000_000 + random.next() % 1_000_000_000)
        now = start
    }

    // MARK: Time

    @discardableResult
    package func at(_ time: Instant, _ action: @escaping () -> Void) -> Alarm {
        let alarm = Alarm(action)
        eventCount += 1
        queue.append(Event(time: max(time, now), order: eventCount, alarm: alarm))
        siftUp(queue.count - 1)
        return alarm
    }

    @discardableResult
    package func after(_ delay: Duration, _ action: @escaping () -> Void) -> Alarm {
        at(now + delay, action)
    }

    /// Lets time pass until no events are left, an invariant fails, or `end` is reached.
    package func run(until end: Instant) {
        var executed = 0
        while violation == nil, let event = queue.first, event.time <= end {
            removeFirst()
            guard let action = event.alarm.action else { continue }
            event.alarm.action = nil
            now = event.time
            action()
            executed += 1
            if executed > World.maximumEvents { fail("spins: \(executed) events and no end") }
        }
    }

    /// Whether no event is left.
    package var isIdle: Bool { !queue.contains { $0.alarm.action != nil } }

    /// Drops all future events, which breaks every reference cycle through them.
    package func end() { queue.removeAll() }

    // MARK: Checks and trace

    /// An invariant does not hold: the run is over. Only the first violation counts.
    package func fail(_ what: @autoclosure () -> String) {
        guard violation == nil else { return }
        let what = what()
        violation = what
        trace("VIOLATION", what)
    }

    package func require(_ holds: Bool, _ what: @autoclosure () -> String) {
        if !holds { fail(what()) }
    }

    package func count(_ what: String) { tally[what, default: 0] += 1 }

    package func trace(_ who: String, _ what: @autoclosure () -> String) {
        guard let print else { return }
        let micros = (now - start).clampedNanoseconds / 1000
        let fraction = String(micros % 1_000_000 + 1_000_000).dropFirst()
        print("\(micros / 1_000_000).\(fraction)  \(who): \(what())")
    }

    // MARK: The heap

    private func siftUp(_ from: Int) {
        var index = from
        while index > 0 {
            let parent = (index - 1) / 2
            guard queue[index] < queue[parent] else { return }
            queue.swapAt(index, parent)
            index = parent
        }
    }

    private func removeFirst() {
        let last = queue.removeLast()
        guard !queue.isEmpty else { return }
        queue[0] = last
        var index = 0
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2]
            where child < queue.count && queue[child] < queue[least] {
                least = child
            }
            guard least != index else { return }
            queue.swapAt(index, least)
            index = least
        }
    }
}
