/// An object's fields, in the order in which they came. Names are compared byte for byte.
///
/// `@unchecked` because its storage is changed only while no other object refers to it.
public struct EJSONObject: @unchecked Sendable {
    public struct Field: Sendable {
        public let name: String
        public let value: EJSON
    }

    private static let sharedCount = 64

    /// nil: there are no fields.
    private(set) var storage: FieldStorage?

    public init() { storage = nil }

    init(_ storage: FieldStorage) { self.storage = storage }

    public var count: Int { storage?.count ?? 0 }
    public var isEmpty: Bool { count == 0 }

    /// The value of a field. A new field is added at the end, and a new value keeps its field's
    /// position. Setting nil removes the field.
    public subscript(name: String) -> EJSON? {
        get {
            guard let storage, let position = storage.names.position(of: name) else { return nil }
            return storage[position]
        }
        set {
            switch (storage?.names.position(of: name), newValue) {
            case (let position?, let value?): own(room: count)[position] = value
            case (let position?, nil):
                let storage = own(room: count)
                storage.remove(at: position)
                storage.ownNames.remove(at: position)
            case (nil, let value?): append(name, value)
            case (nil, nil): break
            }
        }
    }

    package subscript(name: UnsafeRawBufferPointer) -> EJSON? {
        guard let storage, let position = storage.names.position(of: name) else { return nil }
        return storage[position]
    }

    /// Adds a field at the end. The caller knows that no field has the name.
    package mutating func append(_ name: String, _ value: EJSON) {
        let storage = own(room: count + 1)
        storage.ownNames.append(name)
        storage.append(value)
    }

    package mutating func reserveCapacity(_ count: Int) { _ = own(room: count) }

    /// The storage, which no other object shares, with room for this many fields.
    private mutating func own(room: Int) -> FieldStorage {
        let isOwn = isKnownUniquelyReferenced(&storage)
        guard let storage else {
            let fresh = FieldStorage.make(.none, capacity: max(room, 4))
            self.storage = fresh
            return fresh
        }
        if isOwn, room <= storage.room { return storage }
        let copy = storage.copy(capacity: room > storage.room ? room * 2 : room)
        self.storage = copy
        return copy
    }
}

extension EJSONObject {
    public var fields: Fields { Fields(storage: storage) }

    /// The fields in their order.
    public struct Fields: RandomAccessCollection, @unchecked Sendable {
        fileprivate let storage: FieldStorage?

        public var startIndex: Int { 0 }
        public var endIndex: Int { storage?.count ?? 0 }

        public subscript(position: Int) -> Field {
            guard let storage else { preconditionFailure("There is no field \(position).") }
            return Field(name: storage.names.texts[position], value: storage[position])
        }
    }

    /// How long all names are together, in UTF-8.
    var nameBytes: Int { storage?.names.byteCount ?? 0 }

    /// Whether there is a field named `_id`.
    package var hasID: Bool { storage?.names.hasID ?? false }

    /// Takes the names from `others` if they are the same, and otherwise gives them to it:
    /// documents that got the same new field then share one list again. A long list stays the
    /// object's own, because the next new field would have to copy it.
    package mutating func shareNames(with others: inout SharedFieldNames) {
        guard 1...EJSONObject.sharedCount ~= count, storage?.names !== others.names else { return }
        if let names = others.names, storage?.names.hasSameTexts(as: names) ?? false {
            own(room: count).share(names)
        } else {
            others.names = storage?.names
        }
    }

    package func position(of name: String) -> Int? { storage?.names.position(of: name) }

    /// An object with the same names in their order.
    /// - Parameter values: one for each name.
    package func with(values: some Sequence<EJSON>) -> EJSONObject {
        guard let storage else { return self }
        let copy = FieldStorage.make(storage.names, capacity: storage.count)
        for value in values { copy.append(value) }
        precondition(copy.count == storage.count)
        return EJSONObject(copy)
    }

    package func value(at position: Int) -> EJSON {
        guard let storage else { preconditionFailure("There is no field \(position).") }
        return storage[position]
    }
}

extension EJSONObject: Equatable {
    /// Whether both have the same fields, in any order.
    public static func == (first: EJSONObject, second: EJSONObject) -> Bool {
        first.equals(second, keyOrder: false)
    }

    func equals(_ other: EJSONObject, keyOrder: Bool) -> Bool {
        guard count == other.count else { return false }
        guard let mine = storage, let others = other.storage, mine !== others else { return true }
        let sharesNames = mine.names === others.names
        for position in 0..<mine.count {
            let name = mine.names.texts[position]
            // The order is mostly the same.
            if sharesNames || name.hasSameBytes(as: others.names.texts[position]) {
                guard mine[position].equals(others[position], keyOrder: keyOrder) else {
                    return false
                }
            } else {
                guard !keyOrder, let second = other[name],
                    mine[position].equals(second, keyOrder: keyOrder)
                else { return false }
            }
        }
        return true
    }
}
