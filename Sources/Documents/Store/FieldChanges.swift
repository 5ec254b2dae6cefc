package import Wire

/// The difference of two documents in their top-level fields.
package struct FieldChanges: Sendable {
    /// Fields that are new or have another value, in the order of the new document.
    package private(set) var fields = EJSONObject()
    /// Names of the fields that the new document does not have, in the order of the old one.
    package private(set) var cleared: [String] = []

    package var isEmpty: Bool { fields.isEmpty && cleared.isEmpty }

    package init(from old: EJSONObject, to new: EJSONObject) {
        guard !old.isEmpty else {
            fields = new
            return
        }
        for field in new.fields {
            if let value = old[field.name], value == field.value { continue }
            fields.append(field.name, field.value)
        }
        for field in old.fields where new[field.name] == nil { cleared.append(field.name) }
    }
}

extension EJSONObject {
    /// Sets fields and removes others. Values that are equal stay as they are.
    /// - Returns: by how many bytes the estimate of its memory grew, or nil if nothing changed.
    package mutating func merge(_ changes: EJSONObject, cleared: [String]) -> Int? {
        let changed = set(changes)
        let removed = clear(cleared)
        guard changed != nil || removed != nil else { return nil }
        return (changed ?? 0) + (removed ?? 0)
    }

    private mutating func set(_ changes: EJSONObject) -> Int? {
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

    private mutating func clear(_ names: [String]) -> Int? {
        guard names.count > EJSONObject.few else { return clearEach(names) }
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

    /// Up to so many fields are removed one by one.
    private static let few = 4

    private mutating func clearEach(_ names: [String]) -> Int? {
        var growth: Int?
        for name in names {
            guard let old = self[name] else { continue }
            growth = (growth ?? 0) - StoredBytes.of(name: name, old)
            self[name] = nil
        }
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
        guard hasID else { return self }
        var copy = self
        copy["_id"] = nil
        return copy
    }
}
