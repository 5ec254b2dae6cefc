/// The names of an object's fields, in their order. Objects with the same fields can share one
/// list, so that each of many documents needs memory only for its values.
///
/// `@unchecked`, and without checks for overlapping accesses, because a list is changed only while
/// a single object refers to it.
final class FieldNames: @unchecked Sendable {
    @exclusivity(unchecked) private(set) var texts: [String]
    /// How long all names are together, in UTF-8.
    @exclusivity(unchecked) private(set) var byteCount: Int
    /// Whether `_id` is among the names.
    @exclusivity(unchecked) private(set) var hasID: Bool
    /// The names as they were written, with their quotation marks; empty unless a reader keeps it.
    private let source: [UInt8]
    /// The number of each name, once there have been too many names to search; else empty.
    @exclusivity(unchecked) private var numbers: [ByteText: Int]
    /// The numbers in the order of the names, ascending; empty while they are the positions.
    @exclusivity(unchecked) private var order: [Int]
    @exclusivity(unchecked) private var nextNumber: Int
    private static let searchedCount = 16

    static let none = FieldNames()

    private init(source: [UInt8] = []) {
        self.source = source
        texts = []
        byteCount = 0
        hasID = false
        numbers = [:]
        order = []
        nextNumber = 0
    }

    init(copying other: FieldNames) {
        source = []
        texts = other.texts
        byteCount = other.byteCount
        hasID = other.hasID
        numbers = other.numbers
        order = other.order
        nextNumber = other.nextNumber
    }

    /// - Parameter texts: may have duplicates; then the result is nil.
    convenience init?(_ texts: [String], source: [UInt8] = []) {
        self.init(source: source)
        self.texts = texts
        for name in texts { added(name) }
        index()
        if numbers.isEmpty {
            for position in texts.indices where self.position(of: texts[position]) != position {
                return nil
            }
        } else if numbers.count != texts.count {
            return nil
        }
    }

    var count: Int { texts.count }

    func position(of name: String) -> Int? {
        guard numbers.isEmpty else {
            return numbers[ByteText(name)].map { order.isEmpty ? $0 : position(ofNumber: $0) }
        }
        return texts.indices.first { texts[$0].hasSameBytes(as: name) }
    }

    private func position(ofNumber number: Int) -> Int {
        var (start, end) = (0, order.count)
        while start < end {
            let middle = (start + end) / 2
            if order[middle] < number { start = middle + 1 } else { end = middle }
        }
        return start
    }

    func position(of name: UnsafeRawBufferPointer) -> Int? {
        guard numbers.isEmpty else { return position(of: String(decoding: name, as: UTF8.self)) }
        return texts.indices.first { texts[$0].hasBytes(name) }
    }

    func hasSameTexts(as other: FieldNames) -> Bool {
        count == other.count && byteCount == other.byteCount
            && texts.indices.allSatisfy { texts[$0].hasSameBytes(as: other.texts[$0]) }
    }

    /// - Parameter name: is not in the list.
    func append(_ name: String) {
        texts.append(name)
        added(name)
        guard !numbers.isEmpty else { return index() }
        numbers[ByteText(name)] = nextNumber
        if !order.isEmpty { order.append(nextNumber) }
        nextNumber += 1
    }

    func remove(at position: Int) {
        let name = texts.remove(at: position)
        byteCount -= name.utf8.count
        if name.hasBytes("_id") { hasID = false }
        guard numbers.removeValue(forKey: ByteText(name)) != nil else { return }
        // The names after it keep their numbers, so that no name has to be looked up.
        if order.isEmpty { order = Array(0...texts.count) }
        order.remove(at: position)
    }

    private func added(_ name: String) {
        byteCount += name.utf8.count
        if name.hasBytes("_id") { hasID = true }
    }

    private func index() {
        guard texts.count > FieldNames.searchedCount else { return }
        for position in texts.indices { numbers[ByteText(texts[position])] = position }
        order = []
        nextNumber = texts.count
    }
}

extension FieldNames {
    fileprivate func areNames(of object: JSONNode, length: Int) -> Bool {
        source.withUnsafeBytes { source in
            guard source.count == length else { return false }
            var offset = 0
            for place in object.namePlaces {
                let end = offset + place.count
                let mine = UnsafeRawBufferPointer(rebasing: source[offset..<end])
                let name = UnsafeRawBufferPointer(rebasing: object.text[place])
                guard mine.hasSameBytes(as: name) else { return false }
                offset = end
            }
            return true
        }
    }
}

/// A list of names to share, or none yet.
package struct SharedFieldNames: Sendable {
    var names: FieldNames?

    package init() {}
}

/// Lists of names that a reader has met, so that objects with the same fields share one list.
package final class KnownFieldNames {
    /// By a mark of the source.
    @exclusivity(unchecked) private var lists: [FieldNames?] = []
    private static let size = 64
    /// Longer lists are not kept, so that a peer cannot make us keep much.
    private static let longestSource = 2_048

    package init() {}

    /// The names of an object's members; nil if two members have the same name.
    func names(of object: JSONNode) -> FieldNames? {
        var mark: UInt = 0
        var length = 0
        for place in object.namePlaces {
            length += place.count
            // The bytes inside of the quotation marks; for an empty name the marks.
            let (first, last) = (
                object.text[place.lowerBound + 1], object.text[place.upperBound - 2]
            )
            mark = mark &* 31 &+ UInt(first) &* 7 &+ UInt(last)
        }
        guard length <= KnownFieldNames.longestSource else { return FieldNames(texts(of: object)) }
        if lists.isEmpty { lists = Array(repeating: nil, count: KnownFieldNames.size) }
        let place = Int((mark &+ UInt(length)) % UInt(KnownFieldNames.size))
        if let list = lists[place], list.areNames(of: object, length: length) { return list }
        var source: [UInt8] = []
        source.reserveCapacity(length)
        for place in object.namePlaces { source.append(contentsOf: object.text[place]) }
        guard let list = FieldNames(texts(of: object), source: source) else { return nil }
        lists[place] = list
        return list
    }

    private func texts(of object: JSONNode) -> [String] {
        object.members.map { $0.name.string ?? "" }
    }
}
