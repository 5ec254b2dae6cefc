/// When something is to be looked at again, earliest first. An alarm that moved is left where it
/// was, and found not to be due by whoever asks; they are cleared away before they outnumber the
/// rest.
struct Alarms: Sendable {
    private struct Alarm {
        var time: Instant
        var entry: RESTEntry

        /// Whether it is the one that counts.
        var isSet: Bool { entry.alarmSet == time }

        static func < (a: Alarm, b: Alarm) -> Bool {
            (a.time, a.entry.id) < (b.time, b.entry.id)
        }
    }

    private var heap: [Alarm] = []
    /// Those that count.
    private var count = 0

    /// The earliest; clears away those that moved.
    mutating func earliest() -> Instant? {
        while let first = heap.first, !first.isSet { removeFirst() }
        return heap.first?.time
    }

    mutating func set(_ entry: RESTEntry, _ time: Instant?) {
        guard entry.alarmSet != time else { return }
        count += (time == nil ? 0 : 1) - (entry.alarmSet == nil ? 0 : 1)
        entry.alarmSet = time
        guard let time else { return }
        heap.append(Alarm(time: time, entry: entry))
        siftUp(heap.count - 1)
        if heap.count > 64, heap.count > 2 * count { rebuild() }
    }

    /// Takes one out that is due.
    mutating func popDue(_ now: Instant) -> RESTEntry? {
        guard let time = earliest(), time <= now else { return nil }
        let entry = heap[0].entry
        removeFirst()
        entry.alarmSet = nil
        count -= 1
        return entry
    }

    private mutating func rebuild() {
        heap = heap.filter(\.isSet).sorted(by: <)
    }

    private mutating func siftUp(_ from: Int) {
        var index = from
        while index > 0 {
            let parent = (index - 1) / 2
            guard heap[index] < heap[parent] else { return }
            heap.swapAt(index, parent)
            index = parent
        }
    }

    private mutating func removeFirst() {
        let last = heap.removeLast()
        guard !heap.isEmpty else { return }
        heap[0] = last
        var index = 0
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2]
            where child < heap.count && heap[child] < heap[least] {
                least = child
            }
            guard least != index else { return }
            heap.swapAt(index, least)
            index = least
        }
    }
}
