/// When something is to be looked at again, earliest first. An alarm that moved is left where it
/// was, and found not to be due by whoever asks; they are cleared away before they outnumber the
/// rest.
struct Alarms: Sendable {
    private struct Alarm {
        var time: Instant
        var id: UInt64

        static func < (a: Alarm, b: Alarm) -> Bool { (a.time, a.id) < (b.time, b.id) }
    }

    private var heap: [Alarm] = []
    /// What counts, by id.
    private var times: [UInt64: Instant] = [:]

    /// The earliest; clears away those that moved.
    mutating func earliest() -> Instant? {
        while let first = heap.first, times[first.id] != first.time { removeFirst() }
        return heap.first?.time
    }

    mutating func set(_ id: UInt64, _ time: Instant?) {
        guard times[id] != time else { return }
        times[id] = time
        guard let time else { return }
        heap.append(Alarm(time: time, id: id))
        siftUp(heap.count - 1)
        if heap.count > 64, heap.count > 2 * times.count { rebuild() }
    }

    /// Takes one out that is due.
    mutating func popDue(_ now: Instant) -> UInt64? {
        guard let time = earliest(), time <= now else { return nil }
        let id = heap[0].id
        removeFirst()
        times[id] = nil
        return id
    }

    private mutating func rebuild() {
        heap = times.map { Alarm(time: $0.value, id: $0.key) }.sorted(by: <)
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
