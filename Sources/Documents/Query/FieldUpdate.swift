import Wire

/// Applies one operation of a modifier at one path. Missing levels become objects, and lists are
/// filled with null up to an index, unless the operation has nothing to do without the field.
struct FieldUpdate: Sendable {
    let path: FieldPath
    let operation: FieldOperation

    /// Whether a path leads to the document's id.
    var usesID: Bool {
        if case .rename(let target) = operation, target.isID { return true }
        return path.isID
    }

    /// - Throws: `.invalidArgument` if the operation does not fit the document, which must then be
    ///   discarded.
    func apply(to document: EditedObject) throws(RealtimeError) {
        var edit = FieldEdit(path: path, operation: operation)
        try edit.apply(to: document, part: 0)
        guard case .rename(let target) = operation, let taken = edit.taken else { return }
        var place = FieldEdit(path: target, operation: operation, placed: taken)
        try place.apply(to: document, part: 0)
    }
}

/// An operation on its way down the path.
private struct FieldEdit {
    let path: FieldPath
    let operation: FieldOperation
    /// The value that the second half of `$rename` sets.
    var placed: EditedValue?
    /// The value that the first half of `$rename` removed.
    var taken: EditedValue?

    init(path: FieldPath, operation: FieldOperation, placed: EditedValue? = nil) {
        self.path = path
        self.operation = operation
        self.placed = placed
    }

    private var createsPath: Bool { placed != nil || operation.createsPath }

    mutating func apply(to fields: EditedObject, part: Int) throws(RealtimeError) {
        let name = path.parts[part].name
        if part == path.parts.count - 1 {
            let value = fields[name]
            if value == nil, !createsPath { return }
            fields[name] = try result(value)
        } else if let value = fields[name]?.opened {
            fields[name] = value
            try apply(to: value, part: part + 1)
        } else if createsPath {
            let value = EditedObject(EJSONObject())
            fields[name] = .object(value)
            try apply(to: value, part: part + 1)
        }
    }

    /// - Parameter value: opened, if it can be.
    private mutating func apply(to value: EditedValue, part: Int) throws(RealtimeError) {
        switch value {
        case .object(let fields): try apply(to: fields, part: part)
        case .list(let list): try apply(to: list, part: part)
        case .plain:
            guard !createsPath else {
                throw .modifier("\(path.parts[part].name) is below a value that has no fields")
            }
        }
    }

    private mutating func apply(to list: EditedList, part: Int) throws(RealtimeError) {
        if case .rename = operation { throw .modifier("$rename cannot use elements of lists") }
        guard let index = path.parts[part].index else {
            guard createsPath else { return }
            throw .modifier("a list has no element \(path.parts[part].name)")
        }
        let count = list.values.count
        if index >= count {
            guard createsPath else { return }
            guard index - count <= Modifier.maximumPadding else {
                throw .modifier(
                    "more than \(Modifier.maximumPadding) nulls would be needed in a list")
            }
            list.values += repeatElement(.plain(.null), count: index - count)
        }
        let isNew = index == list.values.count
        if part == path.parts.count - 1 {
            let result = try result(isNew ? nil : list.values[index]) ?? .plain(.null)
            if isNew { list.values.append(result) } else { list.values[index] = result }
            return
        }
        if isNew { list.values.append(.object(EditedObject(EJSONObject()))) }
        switch list.values[index] {
        case .plain(.number), .plain(.string), .plain(.bool):
            throw .modifier("\(path.parts[part + 1].name) is below a value that has no fields")
        case .plain, .object, .list:
            let element = list.values[index].opened
            list.values[index] = element
            try apply(to: element, part: part + 1)
        }
    }

    /// - Parameter value: the field's value, nil if the field is missing.
    /// - Returns: the new value, nil to remove the field.
    private mutating func result(_ value: EditedValue?) throws(RealtimeError) -> EditedValue? {
        if let placed { return placed }
        switch operation {
        case .set(let new): return .plain(new)
        case .unset: return nil
        case .rename:
            taken = value
            return nil
        case .number, .push, .addToSet, .pop, .pull, .remove:
            return .plain(try operation.result(value?.value))
        }
    }
}
