internal import Wire

/// A document in the result of a live query.
struct LiveEntry: Sendable {
    let id: DocumentID
    /// All fields, not only those that the query's projection keeps.
    let fields: EJSONObject
    /// What the query's sort compares; nil without one.
    let key: SortOrder.Key?
    /// The document's place in the natural order, which decides between equal keys.
    let rank: Int64
}

/// The order of a live query: its sort, then the natural order. No two documents are equal in it.
struct LiveOrder: Sendable {
    let sort: SortOrder?

    func precedes(_ left: LiveEntry, _ right: LiveEntry) -> Bool {
        if let sort, let leftKey = left.key, let rightKey = right.key {
            let order = sort.compare(leftKey, rightKey)
            if order != 0 { return order < 0 }
        }
        return left.rank < right.rank
    }
}

/// The documents that match a live query, in its order. Finding, inserting and removing one costs
/// little more in a long list than in a short one: the entries lie in chunks of limited size.
///
/// The list is a value: a copy costs time for the chunks, not for the entries.
struct LiveList: Sendable {
    private let order: LiveOrder
    private var chunks: [[LiveEntry]] = []
    /// The counts of the chunks.
    private var counts: [Int] = []
    private(set) var count = 0

    /// A fuller chunk is divided.
    private static let maximumChunk = 256
    /// Chunks of a new list are filled so far.
    private static let newChunk = 192

    /// - Parameter entries: in any order.
    init(_ entries: [LiveEntry], order: LiveOrder) {
        self.order = order
        fill(entries.sorted { order.precedes($0, $1) })
    }

    /// - Parameter index: less than `count`.
    subscript(index: Int) -> LiveEntry {
        var index = index
        var chunk = 0
        while index >= counts[chunk] {
            index -= counts[chunk]
            chunk += 1
        }
        return chunks[chunk][index]
    }

    /// The entries with these positions, as far as they exist.
    func entries(_ range: Range<Int>) -> [LiveEntry] {
        let range = range.clamped(to: 0..<count)
        var entries: [LiveEntry] = []
        entries.reserveCapacity(range.count)
        var start = 0
        for (chunk, length) in zip(chunks, counts) {
            let part = range.clamped(to: start..<start + length)
            if !part.isEmpty { entries += chunk[part.lowerBound - start..<part.upperBound - start] }
            start += length
            if start >= range.upperBound { break }
        }
        return entries
    }

    /// The position of the entry with this id.
    /// - Parameter entry: as it was inserted.
    func index(of entry: LiveEntry) -> Int? {
        guard !chunks.isEmpty else { return nil }
        let (chunk, offset) = place(of: entry)
        guard offset < counts[chunk], chunks[chunk][offset].id == entry.id else {
            // Only if the query's sort is not an order.
            return entries(0..<count).firstIndex { $0.id == entry.id }
        }
        return counts[..<chunk].reduce(offset) { $0 + $1 }
    }

    mutating func insert(_ entry: LiveEntry) {
        guard !chunks.isEmpty else { return fill([entry]) }
        let (chunk, offset) = place(of: entry)
        chunks[chunk].insert(entry, at: offset)
        counts[chunk] += 1
        count += 1
        if counts[chunk] > LiveList.maximumChunk { divide(chunk) }
    }

    /// - Parameter index: less than `count`.
    mutating func remove(at index: Int) {
        var index = index
        var chunk = 0
        while index >= counts[chunk] {
            index -= counts[chunk]
            chunk += 1
        }
        chunks[chunk].remove(at: index)
        counts[chunk] -= 1
        count -= 1
        if counts[chunk] == 0 {
            chunks.remove(at: chunk)
            counts.remove(at: chunk)
        }
    }

    /// Removes and inserts many entries at once, in time for the whole list.
    /// - Parameters:
    ///   - removed: positions, ascending.
    ///   - inserted: in any order.
    mutating func replace(_ removed: [Int], with inserted: [LiveEntry]) {
        let inserted = inserted.sorted { order.precedes($0, $1) }
        var merged: [LiveEntry] = []
        merged.reserveCapacity(count - removed.count + inserted.count)
        var next = 0
        var nextRemoved = 0
        for (index, entry) in entries(0..<count).enumerated() {
            if nextRemoved < removed.count, removed[nextRemoved] == index {
                nextRemoved += 1
                continue
            }
            while next < inserted.count, order.precedes(inserted[next], entry) {
                merged.append(inserted[next])
                next += 1
            }
            merged.append(entry)
        }
        merged += inserted[next...]
        fill(merged)
    }

    private mutating func fill(_ entries: [LiveEntry]) {
        count = entries.count
        chunks.removeAll()
        counts.removeAll()
        var start = 0
        while start < entries.count {
            let end = min(start + LiveList.newChunk, entries.count)
            chunks.append(Array(entries[start..<end]))
            counts.append(end - start)
            start = end
        }
    }

    private mutating func divide(_ chunk: Int) {
        let middle = counts[chunk] / 2
        let second = Array(chunks[chunk][middle...])
        chunks[chunk].removeSubrange(middle...)
        chunks.insert(second, at: chunk + 1)
        counts[chunk] = middle
        counts.insert(second.count, at: chunk + 1)
    }

    /// Where an entry is or belongs.
    private func place(of entry: LiveEntry) -> (chunk: Int, offset: Int) {
        var low = 0
        var high = chunks.count - 1
        // The first chunk whose last entry does not precede this one, otherwise the last chunk.
        while low < high {
            let middle = (low + high) / 2
            if let last = chunks[middle].last, order.precedes(last, entry) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        let entries = chunks[low]
        var start = 0
        var end = entries.count
        while start < end {
            let middle = (start + end) / 2
            if order.precedes(entries[middle], entry) { start = middle + 1 } else { end = middle }
        }
        return (low, start)
    }
}
