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

/// A document that changed and was in the list of a live query, or is now.
struct AffectedEntry: Sendable {
    let id: DocumentID
    /// nil: it was not in the list.
    var old: LiveEntry?
    /// nil: it is not in the list.
    var new: LiveEntry?
    /// Positions in the list as it was and as it is; -1 where it is not.
    var oldIndex = -1
    var newIndex = -1
    /// It counts as changed even if its fields are the same.
    var isTouched = false
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

    /// The same for an entry that is not copied: in a long list, each look at what an entry refers
    /// to waits for memory.
    func precedes(_ left: UnsafePointer<LiveEntry>, _ right: LiveEntry) -> Bool {
        if let sort, let leftPrefix = left.pointee.key?.prefix, let rightKey = right.key {
            let order = SortPrefix.order(leftPrefix, rightKey.prefix)
            if let order, order != 0 { return order < 0 }
            if order == nil, let leftKey = left.pointee.key {
                let order = sort.compareValues(leftKey, rightKey)
                if order != 0 { return order < 0 }
            }
        }
        return left.pointee.rank < right.rank
    }

    /// What it costs to compare these entries beside one step; nil if nothing.
    func weights(of entries: [LiveEntry?]) -> [Int]? {
        guard sort != nil else { return nil }
        let weights = entries.map { ($0?.key?.storedBytes ?? 0) / LiveOrder.bytesOfStep }
        return weights.contains { $0 > 0 } ? weights : nil
    }

    /// Comparing so many bytes counts as a step.
    private static let bytesOfStep = 1024
}

/// The documents that match a live query, in its order. Finding, inserting and removing one costs
/// little more in a long list than in a short one: the entries lie in chunks of limited size.
///
/// The list is a value: a copy costs time for the chunks, not for the entries.
struct LiveList: Sendable {
    let order: LiveOrder
    private var chunks: [[LiveEntry]] = []
    private var counts = ChunkCounts()
    /// The prefixes of the chunks' last entries, together in memory, where they are searched; nil
    /// without a sort.
    private var ends: [SortPrefix?] = []
    var count: Int { counts.total }

    /// A fuller chunk is divided.
    private static let maximumChunk = 256

    /// - Parameter entries: in any order.
    init(_ entries: [LiveEntry], order: LiveOrder) {
        self.order = order
        var builder = LiveListBuilder()
        // Positions, because entries are large.
        for position in entries.indices.sorted(by: {
            order.precedes(entries[$0], entries[$1])
        }) {
            builder.append(entries[position])
        }
        fill(builder.takeChunks())
    }

    /// - Parameter index: less than `count`.
    subscript(index: Int) -> LiveEntry {
        let (chunk, offset) = counts.place(of: index)
        return chunks[chunk][offset]
    }

    /// The entries with these positions, as far as they exist.
    func entries(_ range: Range<Int>) -> [LiveEntry] {
        let range = range.clamped(to: 0..<count)
        var entries: [LiveEntry] = []
        entries.reserveCapacity(range.count)
        guard !range.isEmpty else { return entries }
        var (chunk, offset) = counts.place(of: range.lowerBound)
        while entries.count < range.count {
            let end = min(chunks[chunk].count, offset + range.count - entries.count)
            entries += chunks[chunk][offset..<end]
            chunk += 1
            offset = 0
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
        return counts.start(of: chunk) + offset
    }

    /// - Returns: its position.
    @discardableResult
    mutating func insert(_ entry: LiveEntry) -> Int {
        guard !chunks.isEmpty else {
            fill([[entry]])
            return 0
        }
        let (chunk, offset) = place(of: entry)
        chunks[chunk].insert(entry, at: offset)
        counts.add(1, to: chunk)
        if offset + 1 == counts[chunk] { ends[chunk] = entry.key?.prefix }
        let index = counts.start(of: chunk) + offset
        if counts[chunk] > LiveList.maximumChunk { divide(chunk) }
        return index
    }

    /// Replaces an entry by another.
    /// - Parameter index: less than `count`.
    /// - Returns: its position.
    mutating func replace(at index: Int, with entry: LiveEntry) -> Int {
        let (chunk, offset) = counts.place(of: index)
        let isInPlace = chunks[chunk].withUnsafeBufferPointer { entries in
            // At an end of the chunk, the entry may belong to the next one.
            guard let first = entries.baseAddress, offset > 0, offset + 1 < entries.count else {
                return false
            }
            return order.precedes(first + (offset - 1), entry)
                && !order.precedes(first + (offset + 1), entry)
        }
        if isInPlace {
            chunks[chunk][offset] = entry
            return index
        }
        remove(at: index)
        return insert(entry)
    }

    /// - Parameter index: less than `count`.
    mutating func remove(at index: Int) {
        let (chunk, offset) = counts.place(of: index)
        chunks[chunk].remove(at: offset)
        counts.add(-1, to: chunk)
        if counts[chunk] == 0 {
            chunks.remove(at: chunk)
            ends.remove(at: chunk)
            counts.replace(chunk, by: [])
        } else if offset == counts[chunk] {
            ends[chunk] = chunks[chunk][offset - 1].key?.prefix
        }
    }

    /// Changes the list by one document, and notes its positions.
    mutating func update(_ affected: inout AffectedEntry) {
        affected.oldIndex = affected.old.flatMap { index(of: $0) } ?? -1
        switch affected.new {
        case let new? where affected.oldIndex >= 0:
            affected.newIndex = replace(at: affected.oldIndex, with: new)
        case let new?: affected.newIndex = insert(new)
        case nil: if affected.oldIndex >= 0 { remove(at: affected.oldIndex) }
        }
    }

    // MARK: All entries

    var chunkCount: Int { chunks.count }

    /// Takes the entries of a chunk out of the list, which cannot be used until it is filled anew.
    mutating func takeChunk(_ chunk: Int) -> [LiveEntry] { exchange(&chunks[chunk], with: []) }

    /// Replaces all entries.
    /// - Parameter chunks: from a builder.
    mutating func fill(_ chunks: [[LiveEntry]]) {
        self.chunks = chunks
        ends = chunks.map { $0.last?.key?.prefix }
        counts = ChunkCounts(chunks.map { $0.count })
    }

    private mutating func divide(_ chunk: Int) {
        let middle = counts[chunk] / 2
        let second = Array(chunks[chunk][middle...])
        chunks[chunk].removeSubrange(middle...)
        chunks.insert(second, at: chunk + 1)
        ends.insert(chunks[chunk].last?.key?.prefix, at: chunk)
        counts.replace(chunk, by: [middle, second.count])
    }

    /// Where an entry is or belongs.
    private func place(of entry: LiveEntry) -> (chunk: Int, offset: Int) {
        chunks.withUnsafeBufferPointer { chunks in
            // The first chunk whose last entry does not precede this one, otherwise the last chunk.
            let chunk = LiveList.first(in: 0..<chunks.count - 1) { number in
                if let end = ends[number], let prefix = entry.key?.prefix,
                    let order = SortPrefix.order(end, prefix), order != 0
                {
                    return order > 0
                }
                return chunks[number].withUnsafeBufferPointer { entries in
                    guard let first = entries.baseAddress else { return true }
                    return !order.precedes(first + (entries.count - 1), entry)
                }
            }
            let offset = chunks[chunk].withUnsafeBufferPointer { entries in
                LiveList.first(in: 0..<entries.count) { number in
                    entries.baseAddress.map { !order.precedes($0 + number, entry) } ?? true
                }
            }
            return (chunk, offset)
        }
    }

    /// The first number for which a condition holds, which holds for all numbers after it; the end
    /// of the range if there is none.
    private static func first(in range: Range<Int>, where holds: (Int) -> Bool) -> Int {
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end {
            let middle = (start + end) / 2
            if holds(middle) { end = middle } else { start = middle + 1 }
        }
        return start
    }
}

/// Puts entries that come in order into the chunks of a list.
struct LiveListBuilder: Sendable {
    private var chunks: [[LiveEntry]] = []
    private var chunk: [LiveEntry] = []
    private(set) var count = 0

    /// Chunks of a new list are filled so far.
    private static let newChunk = 192

    mutating func append(_ entry: LiveEntry) {
        if chunk.count == LiveListBuilder.newChunk {
            chunks.append(chunk)
            chunk = []
        }
        // A short list takes no more memory than it needs.
        if chunk.isEmpty, !chunks.isEmpty { chunk.reserveCapacity(LiveListBuilder.newChunk) }
        chunk.append(entry)
        count += 1
    }

    /// At the end.
    mutating func takeChunks() -> [[LiveEntry]] {
        if !chunk.isEmpty { chunks.append(chunk) }
        chunk = []
        return exchange(&chunks, with: [])
    }
}
