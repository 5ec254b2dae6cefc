/// The times at which requests must be checked, earliest first. A changed alarm stays in the heap,
/// because most requests end before theirs: removing each would cost more than checking an outdated
/// one. Outdated alarms are removed before they outnumber the others.
struct Alarms: Sendable {
    struct Alarm {
        var time: Instant
        /// The request's id, so that an alarm does not keep a request alive that has ended.
        var id: RESTSession.ID

        /// Whether it is the request's current alarm.
        func isSet(_ entry: RESTEntry?) -> Bool { entry?.alarmSet == time }

        static func < (a: Alarm, b: Alarm) -> Bool { (a.time, a.id) < (b.time, b.id) }
    }

    private var heap: [Alarm] = []
    /// How many are not outdated.
    private var count = 0
    /// How many outdated alarms are always allowed.
    private static let most = 128

    /// The earliest time; it may be that of an outdated alarm.
    var earliest: Instant? { count == 0 ? nil : heap.first?.time }

    mutating func set(_ entry: RESTEntry, _ time: Instant?) {
        guard entry.alarmSet != time else { return }
        count += (time == nil ? 0 : 1) - (entry.alarmSet == nil ? 0 : 1)
        entry.alarmSet = time
        guard let time else { return }
        heap.append(Alarm(time: time, id: entry.id))
        siftUp(heap.count - 1)
    }

    /// Removes an alarm that is due; it may be outdated.
    mutating func popDue(_ now: Instant) -> Alarm? {
        guard let first = heap.first, first.time <= now else { return nil }
        removeFirst()
        return first
    }

    var isCrowded: Bool { heap.count > Alarms.most && heap.count > 4 * count }

    /// Removes outdated alarms.
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
