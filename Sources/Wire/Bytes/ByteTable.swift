/// Values by name, in the order in which the names were added. A lookup by borrowed bytes does not
/// make a `String`. Names are compared byte for byte.
package struct ByteTable<Value> {
    @usableFromInline var index = ByteIndex()
    /// By position; nil where a name was removed.
    @usableFromInline var slots: [Value?] = []

    @inlinable package init() {}

    @inlinable package var count: Int { index.count }
    @inlinable package var isEmpty: Bool { index.count == 0 }

    /// The values in the order of their names.
    @inlinable package var values: [Value] {
        var values: [Value] = []
        values.reserveCapacity(count)
        for case let value? in slots { values.append(value) }
        return values
    }

    /// The value of a name. A new name is added at the end, and a new value keeps its name's
    /// position. Setting nil removes the name.
    @inlinable package subscript(name: UnsafeRawBufferPointer) -> Value? {
        get { index.position(of: name).flatMap { slots[$0] } }
        set {
            if let newValue { insert(newValue, for: name) } else { remove(name) }
        }
    }

    @inlinable package subscript(name: String) -> Value? {
        get {
            var name = name
            return name.withUTF8 { self[UnsafeRawBufferPointer($0)] }
        }
        set {
            var name = name
            name.withUTF8 { self[UnsafeRawBufferPointer($0)] = newValue }
        }
    }

    @inlinable package mutating func removeAll() { self = ByteTable() }

    @usableFromInline
    mutating func insert(_ value: Value, for name: UnsafeRawBufferPointer) {
        if let position = index.position(of: name) {
            slots[position] = value
        } else {
            index.append(name)
            slots.append(value)
        }
    }

    @usableFromInline
    mutating func remove(_ name: UnsafeRawBufferPointer) {
        guard let position = index.remove(name) else { return }
        slots[position] = nil
        if index.compact() { slots.removeAll { $0 == nil } }
    }
}

extension ByteTable: Sendable where Value: Sendable {}

/// Positions of names: an open-addressing hash table with linear probing. Each process seeds its
/// hashes differently, so a peer cannot choose names that collide.
@usableFromInline
struct ByteIndex: Sendable {
    private struct Entry: Sendable {
        let name: [UInt8]
        let hash: Int
        var isRemoved = false

        func isNamed(_ other: UnsafeRawBufferPointer) -> Bool {
            !isRemoved && name.withUnsafeBytes { other.hasSameBytes(as: $0) }
        }
    }

    private var entries: [Entry] = []
    /// Positions by hash, `vacant` or `removed`; the count is a power of two.
    private var cells: [Int32] = []
    private var usedCells = 0
    @usableFromInline private(set) var count = 0

    /// As many are compared one by one, which is faster than a hash.
    private static let fewNames = 4
    private static let vacant: Int32 = -1
    private static let removed: Int32 = -2

    @usableFromInline init() {}

    @usableFromInline
    func position(of name: UnsafeRawBufferPointer) -> Int? {
        if entries.count <= ByteIndex.fewNames { return entries.firstIndex { $0.isNamed(name) } }
        return cell(of: name).map { Int(cells[$0]) }
    }

    /// Adds a name that the index does not have.
    @usableFromInline
    mutating func append(_ name: UnsafeRawBufferPointer) {
        if (usedCells + 1) * 4 > cells.count * 3 { rebuild(for: count + 1) }
        entries.append(Entry(name: Array(name), hash: ByteIndex.hash(name)))
        place(entries.count - 1)
        count += 1
    }

    /// - Returns: the position that the name had, which stays unused.
    @usableFromInline
    mutating func remove(_ name: UnsafeRawBufferPointer) -> Int? {
        guard count > 0, let cell = cell(of: name) else { return nil }
        let position = Int(cells[cell])
        cells[cell] = ByteIndex.removed
        entries[position] = Entry(name: [], hash: 0, isRemoved: true)
        count -= 1
        return position
    }

    /// Closes the gaps of removed names if they are more than the others.
    /// - Returns: whether positions have changed.
    @usableFromInline
    mutating func compact() -> Bool {
        guard entries.count > 16, entries.count > 2 * count else { return false }
        entries.removeAll { $0.isRemoved }
        rebuild(for: count)
        return true
    }

    private func cell(of name: UnsafeRawBufferPointer) -> Int? {
        let hash = ByteIndex.hash(name)
        let mask = cells.count - 1
        var cell = hash & mask
        while cells[cell] != ByteIndex.vacant {
            if cells[cell] >= 0, isName(name, hash, at: Int(cells[cell])) { return cell }
            cell = (cell + 1) & mask
        }
        return nil
    }

    private func isName(_ name: UnsafeRawBufferPointer, _ hash: Int, at position: Int) -> Bool {
        entries[position].hash == hash && entries[position].isNamed(name)
    }

    private mutating func place(_ position: Int) {
        let mask = cells.count - 1
        var cell = entries[position].hash & mask
        while cells[cell] != ByteIndex.vacant { cell = (cell + 1) & mask }
        cells[cell] = Int32(position)
        usedCells += 1
    }

    /// Makes cells for `names`, of which at most half are used then.
    private mutating func rebuild(for names: Int) {
        var size = 8
        while size < 2 * names { size *= 2 }
        cells = Array(repeating: ByteIndex.vacant, count: size)
        usedCells = 0
        for position in entries.indices where !entries[position].isRemoved { place(position) }
    }

    private static func hash(_ name: UnsafeRawBufferPointer) -> Int {
        var hasher = Hasher()
        hasher.combine(bytes: name)
        return hasher.finalize()
    }
}

extension UnsafeRawBufferPointer {
    /// Whether both have the same bytes. For short ones.
    package func hasSameBytes(as other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        var index = 0
        while count - index >= 8 {
            let mine = loadUnaligned(fromByteOffset: index, as: UInt64.self)
            if mine != other.loadUnaligned(fromByteOffset: index, as: UInt64.self) { return false }
            index += 8
        }
        while index < count {
            if self[index] != other[index] { return false }
            index += 1
        }
        return true
    }

    /// Whether the bytes are those of an ASCII word.
    package func isWord(_ word: StaticString) -> Bool {
        hasSameBytes(
            as: UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }

    package func beginsWithWord(_ word: StaticString) -> Bool {
        count >= word.utf8CodeUnitCount
            && UnsafeRawBufferPointer(rebasing: self[..<word.utf8CodeUnitCount]).isWord(word)
    }
}
