/// The fields of an object in one allocation: their names, which other objects may share, and their
/// values. It is changed only while a single object refers to it.
final class FieldStorage: ManagedBuffer<FieldHeader, EJSON> {
    static func make(_ names: FieldNames, capacity: Int) -> FieldStorage {
        let storage = FieldStorage.create(minimumCapacity: capacity) { _ in
            FieldHeader(names: names, count: 0, room: capacity)
        }
        return unsafeDowncast(storage, to: FieldStorage.self)
    }

    deinit { values.deinitialize(count: count) }

    // By pointers, because each use of `header` would be checked for overlapping accesses.
    private var head: UnsafeMutablePointer<FieldHeader> { withUnsafeMutablePointerToHeader { $0 } }
    private var values: UnsafeMutablePointer<EJSON> { withUnsafeMutablePointerToElements { $0 } }

    var names: FieldNames { head.pointee.names }
    var count: Int { head.pointee.count }
    /// For how many values there is room.
    var room: Int { head.pointee.room }

    subscript(position: Int) -> EJSON {
        get {
            precondition(position < count)
            return values[position]
        }
        set {
            precondition(position < count)
            values[position] = newValue
        }
    }

    /// Adds a value, for which there is room.
    func append(_ value: EJSON) {
        precondition(count < room)
        (values + count).initialize(to: value)
        head.pointee.count += 1
    }

    func remove(at position: Int) {
        precondition(position < count)
        let place = values + position
        place.deinitialize(count: 1)
        place.moveInitialize(from: place + 1, count: count - position - 1)
        head.pointee.count -= 1
    }

    /// The list of names, which no other object shares.
    var ownNames: FieldNames {
        if !isKnownUniquelyReferenced(&head.pointee.names) {
            head.pointee.names = FieldNames(copying: names)
        }
        return names
    }

    /// - Parameter names: the same in another list.
    func share(_ names: FieldNames) { head.pointee.names = names }

    func copy(capacity: Int) -> FieldStorage {
        let copy = FieldStorage.make(names, capacity: max(capacity, count))
        for position in 0..<count { copy.append(self[position]) }
        return copy
    }
}

struct FieldHeader {
    var names: FieldNames
    var count: Int
    let room: Int
}
