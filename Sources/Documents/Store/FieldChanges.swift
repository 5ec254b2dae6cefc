package import Wire

/// The difference of two documents in their top-level fields.
package struct FieldChanges: Sendable {
    /// Fields that are new or have another value, in the order of the new document.
    package private(set) var fields = EJSONObject()
    /// Names of the fields that the new document does not have, in the order of the old one.
    package private(set) var cleared: [String] = []

    package var isEmpty: Bool { fields.isEmpty && cleared.isEmpty }

    /// As many products of field counts are compared without an index.
    private static let fewComparisons = 1_024

    package init(from old: EJSONObject, to new: EJSONObject) {
        guard old.count <= FieldChanges.fewComparisons / max(new.count, 1) else {
            compareByIndex(old, new)
            return
        }
        for field in new.fields {
            if let value = old[field.name], value == field.value { continue }
            fields.append(field.name, field.value)
        }
        for field in old.fields where new[field.name] == nil { cleared.append(field.name) }
    }

    private mutating func compareByIndex(_ old: EJSONObject, _ new: EJSONObject) {
        let oldValues = FieldIndex(old)
        let newValues = FieldIndex(new)
        for field in new.fields {
            if let value = oldValues[field.name], value == field.value { continue }
            fields.append(field.name, field.value)
        }
        for field in old.fields where newValues[field.name] == nil { cleared.append(field.name) }
    }
}

/// The fields of a document by name, for documents with very many of them.
private struct FieldIndex {
    private let fields: [EJSONObject.Field]
    private var positions = ByteTable<Int>()

    init(_ object: EJSONObject) {
        fields = object.fields
        for (position, field) in fields.enumerated() { positions[field.name] = position }
    }

    subscript(name: String) -> EJSON? { positions[name].map { fields[$0].value } }
}

extension EJSONObject {
    /// As many products of field counts are merged without an index.
    private static let fewComparisons = 1_024

    /// Sets fields and removes others. Values that are equal stay as they are.
    /// - Returns: by how many bytes the estimate of its memory grew, or nil if nothing changed.
    mutating func merge(_ changes: EJSONObject, cleared: [String]) -> Int? {
        let changed =
            count <= EJSONObject.fewComparisons / max(changes.count, 1)
            ? setEach(changes) : setAll(changes)
        let removed = clear(cleared)
        guard changed != nil || removed != nil else { return nil }
        return (changed ?? 0) + (removed ?? 0)
    }

    private mutating func setEach(_ changes: EJSONObject) -> Int? {
        var growth: Int?
        for field in changes.fields {
            if let old = self[field.name] {
                if old == field.value { continue }
                growth = (growth ?? 0) - StoredBytes.of(name: field.name, old)
            }
            self[field.name] = field.value
            growth = (growth ?? 0) + StoredBytes.of(name: field.name, field.value)
        }
        return growth
    }

    private mutating func setAll(_ changes: EJSONObject) -> Int? {
        var growth: Int?
        var merged = EJSONObject()
        var rest = ByteTable<EJSON>()
        for field in changes.fields { rest[field.name] = field.value }
        for field in fields {
            guard let value = rest[field.name] else {
                merged.append(field.name, field.value)
                continue
            }
            rest[field.name] = nil
            if value == field.value {
                merged.append(field.name, field.value)
            } else {
                merged.append(field.name, value)
                growth =
                    (growth ?? 0) + StoredBytes.of(name: field.name, value)
                    - StoredBytes.of(name: field.name, field.value)
            }
        }
        for field in changes.fields where rest[field.name] != nil {
            merged.append(field.name, field.value)
            growth = (growth ?? 0) + StoredBytes.of(name: field.name, field.value)
        }
        if growth != nil { self = merged }
        return growth
    }

    private mutating func clear(_ names: [String]) -> Int? {
        guard !names.isEmpty else { return nil }
        var gone = ByteTable<Bool>()
        for name in names { gone[name] = true }
        var growth: Int?
        var kept = EJSONObject()
        for field in fields {
            if gone[field.name] == nil {
                kept.append(field.name, field.value)
            } else {
                growth = (growth ?? 0) - StoredBytes.of(name: field.name, field.value)
            }
        }
        if growth != nil { self = kept }
        return growth
    }

    /// The same fields after one named `_id`, which replaces any of that name.
    package func with(id: EJSON) -> EJSONObject {
        var copy = EJSONObject()
        copy.reserveCapacity(count + 1)
        copy.append("_id", id)
        for field in withoutID.fields { copy.append(field.name, field.value) }
        return copy
    }

    /// The same fields without one named `_id`.
    var withoutID: EJSONObject {
        guard self["_id"] != nil else { return self }
        var copy = self
        copy["_id"] = nil
        return copy
    }
}
