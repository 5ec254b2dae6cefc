import Wire

/// A value while a modifier changes it. Objects and lists are opened when an operation goes into
/// them; a change then costs the same in a large one as in a small one.
enum EditedValue {
    case plain(EJSON)
    case object(EditedObject)
    case list(EditedList)

    /// Opens an object or a list.
    var opened: EditedValue {
        switch self {
        case .plain(.object(let fields)): .object(EditedObject(fields))
        case .plain(.array(let elements)): .list(EditedList(elements))
        case .plain, .object, .list: self
        }
    }

    /// The value as it is now. Costs time for all that was opened.
    var value: EJSON {
        switch self {
        case .plain(let value): value
        case .object(let object): .object(object.fields)
        case .list(let list): .array(list.elements)
        }
    }
}

/// An opened object.
final class EditedObject {
    private let base: EJSONObject
    /// Of the fields of `base`; nil for those that are removed.
    @exclusivity(unchecked) private var values: [EditedValue?]
    /// Fields that the object had not, or that were removed before.
    @exclusivity(unchecked) private var added = ByteTable<(name: String, value: EditedValue)>()
    @exclusivity(unchecked) private var isRemoved = false

    init(_ fields: EJSONObject) {
        base = fields
        values = fields.fields.map { .plain($0.value) }
    }

    /// Like the same of `EJSONObject`.
    subscript(name: String) -> EditedValue? {
        get {
            if let position = base.position(of: name), let value = values[position] {
                return value
            }
            return added[name]?.value
        }
        set {
            if let position = base.position(of: name), values[position] != nil {
                values[position] = newValue
                if newValue == nil { isRemoved = true }
            } else {
                added[name] = newValue.map { (name, $0) }
            }
        }
    }

    /// The fields as they are now.
    var fields: EJSONObject {
        var fields = base
        if isRemoved {
            fields = EJSONObject()
            for (field, value) in zip(base.fields, values) {
                if let value { fields.append(field.name, value.value) }
            }
        } else {
            // With the names of the object as it was, which many documents share.
            fields = base.with(values: values.lazy.map { $0?.value ?? .null })
        }
        for field in added.values { fields.append(field.name, field.value.value) }
        return fields
    }
}

/// An opened list.
final class EditedList {
    @exclusivity(unchecked) var values: [EditedValue]

    init(_ elements: [EJSON]) { values = elements.map { .plain($0) } }

    var elements: [EJSON] { values.map { $0.value } }
}
