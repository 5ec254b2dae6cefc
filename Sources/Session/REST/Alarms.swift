/// When requests are to be looked at again, earliest first. An alarm that moved is left where it
/// was, as most requests end before theirs: taking each one out would cost more than a look at a
/// time that has lost its meaning. They are cleared away before they outnumber the rest.
struct Alarms: Sendable {
    struct Alarm {
        var time: Instant
        /// The request's number: what has ended is not kept alive by its alarm.
        var id: RESTSession.ID

        /// Whether it is the one that counts.
        func isSet(_ entry: RESTEntry?) -> Bool { entry?.alarmSet == time }

        static func < (a: Alarm, b: Alarm) -> Bool { (a.time, a.id) < (b.time, b.id) }
    }

    private var heap: [Alarm] = []
    /// Those that count.
    private var count = 0
    /// So many are left where they were.
    private static let most = 128

    /// None is earlier; one that moved may have been.
    var earliest: Instant? { count == 0 ? nil : heap.first?.time }

    mutating func set(_ entry: RESTEntry, _ time: Instant?) {
        guard entry.alarmSet != time else { return }
        count += (time == nil ? 0 : 1) - (entry.alarmSet == nil ? 0 : 1)
        entry.alarmSet = time
        guard let time else { return }
        heap.append(Alarm(time: time, id: entry.id))
        siftUp(heap.count - 1)
    }

    /// Takes one out whose time has come; it may have moved.
    mutating func popDue(_ now: Instant) -> Alarm? {
        guard let first = heap.first, first.time <= now else { return nil }
        removeFirst()
        return first
    }

    var isCrowded: Bool { heap.count > Alarms.most && heap.count > 4 * count }

    /// Clears away those that moved.
    mutating func clear(_ isSet: (Alarm) -> Bool) {
        heap.removeAll { !isSet($0) }
        heap.sort(by: <)
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
