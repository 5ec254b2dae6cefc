/// Things that are due at some time. Adding, removing and finding the first costs time that grows
/// with the logarithm of their number.
struct DueQueue<ID: Hashable & Sendable>: Sendable {
    private struct Entry: Sendable {
        let due: Instant
        /// Entries that are due at the same time keep their order.
        let order: Int
        let id: ID

        func precedes(_ other: Entry) -> Bool {
            due == other.due ? order < other.order : due < other.due
        }
    }

    /// A binary heap. The first entry is valid; others may have been removed.
    private var heap: [Entry] = []
    /// The valid entry of each thing.
    private var entries: [ID: (order: Int, due: Instant)] = [:]
    private var lastOrder = 0

    /// When the first is due.
    var first: Instant? { heap.first?.due }

    /// Adds a thing, or changes when it is due.
    /// - Parameter due: nil for never.
    mutating func set(_ id: ID, due: Instant?) {
        guard let due else { return remove(id) }
        guard entries[id]?.due != due else { return }
        lastOrder += 1
        entries[id] = (lastOrder, due)
        heap.append(Entry(due: due, order: lastOrder, id: id))
        rise()
        if heap.count > 2 * entries.count + 16 { compact() }
        dropRemoved()
    }

    mutating func remove(_ id: ID) {
        guard entries.removeValue(forKey: id) != nil else { return }
        dropRemoved()
    }

    /// Takes the first thing, if it is due.
    mutating func takeFirst(_ now: Instant) -> ID? {
        guard let first = heap.first, first.due <= now else { return nil }
        remove(first.id)
        return first.id
    }

    /// Takes what is due, in the order of time.
    mutating func takeDue(_ now: Instant) -> [ID] {
        var ids: [ID] = []
        while let id = takeFirst(now) { ids.append(id) }
        return ids
    }

    private func isValid(_ entry: Entry) -> Bool { entries[entry.id]?.order == entry.order }

    private mutating func dropRemoved() {
        while let first = heap.first, !isValid(first) { removeFirst() }
    }

    private mutating func compact() {
        // A sorted list is a heap.
        heap = heap.filter { isValid($0) }.sorted { $0.precedes($1) }
    }

    private mutating func rise() {
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].precedes(heap[parent]) else { return }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    private mutating func removeFirst() {
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && heap[child].precedes(heap[least]) {
                least = child
            }
            guard least != parent else { return }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}
