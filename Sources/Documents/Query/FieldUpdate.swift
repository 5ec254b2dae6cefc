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
    func apply(to document: inout EJSON) throws(RealtimeError) {
        var taken: EJSON?
        try update(&document, part: 0, &taken)
        guard case .rename(let target) = operation, let taken else { return }
        try FieldUpdate(path: target, operation: .place(taken)).apply(to: &document)
    }

    private func update(
        _ value: inout EJSON, part: Int, _ taken: inout EJSON?
    ) throws(RealtimeError) {
        switch value {
        case .object(var fields):
            // Released, so that the fields are changed in place and not copied.
            value = .null
            try update(&fields, part: part, &taken)
            value = .object(fields)
        case .array(var elements):
            value = .null
            try update(&elements, part: part, &taken)
            value = .array(elements)
        default:
            guard !operation.createsPath else {
                throw .modifier("\(path.parts[part].name) is below a value that has no fields")
            }
        }
    }

    private func update(
        _ fields: inout EJSONObject, part: Int, _ taken: inout EJSON?
    ) throws(RealtimeError) {
        let name = path.parts[part].name
        if part == path.parts.count - 1 {
            let value = fields[name]
            if value == nil, !operation.createsPath { return }
            taken = value
            fields[name] = try operation.result(value)
        } else if var value = fields[name] {
            fields[name] = .null
            try update(&value, part: part + 1, &taken)
            fields[name] = value
        } else if operation.createsPath {
            var value = EJSON.object(EJSONObject())
            try update(&value, part: part + 1, &taken)
            fields[name] = value
        }
    }

    private func update(
        _ elements: inout [EJSON], part: Int, _ taken: inout EJSON?
    ) throws(RealtimeError) {
        guard operation.allowsLists else { throw .modifier("$rename cannot use elements of lists") }
        guard let index = path.parts[part].index else {
            guard operation.createsPath else { return }
            throw .modifier("a list has no element \(path.parts[part].name)")
        }
        if index >= elements.count {
            guard operation.createsPath else { return }
            guard index - elements.count <= Modifier.maximumPadding else {
                throw .modifier(
                    "more than \(Modifier.maximumPadding) nulls would be needed in a list")
            }
            elements += repeatElement(.null, count: index - elements.count)
        }
        let isNew = index == elements.count
        if part == path.parts.count - 1 {
            let result = try operation.result(isNew ? nil : elements[index])
            if isNew { elements.append(result ?? .null) } else { elements[index] = result ?? .null }
            return
        }
        if isNew { elements.append(.object(EJSONObject())) }
        switch elements[index] {
        case .number, .string, .bool:
            throw .modifier("\(path.parts[part + 1].name) is below a value that has no fields")
        default: try update(&elements[index], part: part + 1, &taken)
        }
    }
}
