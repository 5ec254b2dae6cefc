package import Wire

/// Changes a document, as MongoDB's and Meteor's modifiers do (M17): either operators such
/// as `{$set: {"a.b": 1}}`, or a plain object that replaces all fields.
package struct Modifier: Sendable {
    /// How many levels of objects and lists a changed document may have.
    package static let maximumDepth = 200
    /// How many nulls are added to a list at once, before an element with a higher index.
    package static let maximumPadding = 100_000

    private enum Change {
        case replace(EJSONObject)
        case update([FieldUpdate])
    }

    private let change: Change

    /// - Parameters:
    ///   - value: an object.
    ///   - now: the time for `$currentDate`, in milliseconds since 1970.
    /// - Throws: `.invalidArgument` with the reason.
    package init(_ value: EJSON, now: Int64) throws(RealtimeError) {
        guard case .object(let object) = value else { throw .modifier("an object is expected") }
        guard try object.hasOperators() else {
            try value.checkFieldNames()
            change = .replace(object)
            return
        }
        var updates: [FieldUpdate] = []
        for field in object.fields {
            guard let name = FieldOperator(field.name) else {
                throw .modifier("\(field.name) is not supported")
            }
            guard case .object(let operands) = field.value else {
                throw .modifier("\(field.name) needs an object")
            }
            for operand in operands.fields {
                let path = try FieldPath(modifying: operand.name)
                let operation = try name.operation(operand.value, path, now: now)
                guard let operation else { continue }
                updates.append(FieldUpdate(path: path, operation: operation))
            }
        }
        change = .update(updates)
    }

    /// Changes a document. It stays as it was if an error is thrown.
    /// - Parameters:
    ///   - fields: the document's fields without its `_id`.
    ///   - id: its id, which cannot be changed.
    /// - Returns: the new fields without the `_id`.
    /// - Throws: `.invalidArgument` if the modifier does not fit the document.
    package func apply(
        to fields: EJSONObject, id: DocumentID
    ) throws(RealtimeError) -> EJSONObject {
        var changed = fields
        switch change {
        case .replace(let replacement): changed = replacement
        case .update(let updates):
            let usesID = updates.contains { $0.usesID }
            if usesID, let id = id.value { changed["_id"] = id }
            let edited = EditedObject(changed)
            for update in updates { try update.apply(to: edited) }
            changed = edited.fields
            guard !usesID || changed["_id"] != nil else {
                throw .modifier("the _id of a document cannot be changed")
            }
        }
        guard !EJSON.object(changed).isDeeper(than: Modifier.maximumDepth) else {
            throw .modifier("the document would have more than \(Modifier.maximumDepth) levels")
        }
        guard changed["_id"].map({ $0 == id.value }) ?? true else {
            throw .modifier("the _id of a document cannot be changed")
        }
        changed["_id"] = nil
        return changed
    }
}

/// The operators of modifiers.
private enum FieldOperator {
    case set, unset, inc, min, max, mul, rename, push, addToSet, pop, pull, pullAll, currentDate
    case setOnInsert

    init?(_ name: String) {
        let names: [(StaticString, FieldOperator)] = [
            ("$set", .set), ("$unset", .unset), ("$inc", .inc), ("$min", .min), ("$max", .max),
            ("$mul", .mul), ("$rename", .rename), ("$push", .push), ("$addToSet", .addToSet),
            ("$pop", .pop), ("$pull", .pull), ("$pullAll", .pullAll),
            ("$currentDate", .currentDate), ("$setOnInsert", .setOnInsert),
        ]
        guard let known = names.first(where: { name.hasBytes($0.0) }) else { return nil }
        self = known.1
    }

    /// - Returns: nil if the operator has no effect.
    func operation(
        _ operand: EJSON, _ path: FieldPath, now: Int64
    ) throws(RealtimeError) -> FieldOperation? {
        switch self {
        case .set:
            try operand.checkFieldNames()
            return .set(operand)
        case .unset: return .unset
        case .inc: return .number(.add, try number(operand))
        case .min: return .number(.minimum, try number(operand))
        case .max: return .number(.maximum, try number(operand))
        case .mul: return .number(.multiply, try number(operand))
        case .rename: return .rename(to: try target(operand, of: path))
        case .push: return .push(try PushOperation(operand))
        case .addToSet: return .addToSet(try additions(operand))
        case .pop:
            if case .number(let side) = operand, side < 0 { return .pop(first: true) }
            return .pop(first: false)
        case .pull:
            guard case .object = operand else { return .remove(EJSONSet([operand])) }
            return .pull(try SelectorCompiler().element("$pull", operand))
        case .pullAll:
            guard case .array(let values) = operand else {
                throw .modifier("$pullAll needs a list of values")
            }
            return .remove(EJSONSet(values))
        case .currentDate:
            guard isDate(operand) else {
                throw .modifier("$currentDate needs true or {$type: \"date\"}")
            }
            return .set(.date(now))
        case .setOnInsert: return nil
        }
    }

    private func number(_ operand: EJSON) throws(RealtimeError) -> Double {
        guard case .number(let number) = operand else {
            throw .modifier("$inc, $mul, $min and $max need numbers")
        }
        return number
    }

    private func target(
        _ operand: EJSON, of source: FieldPath
    ) throws(RealtimeError) -> FieldPath {
        guard case .string(let text) = operand else { throw .modifier("$rename needs a path") }
        let target = try FieldPath(modifying: text)
        guard !target.parts.elementsEqual(source.parts, by: { $0.bytes == $1.bytes }) else {
            throw .modifier("$rename needs another path")
        }
        return target
    }

    private func additions(_ operand: EJSON) throws(RealtimeError) -> [EJSON] {
        var values = [operand]
        if case .object(let object) = operand, let first = object.fields.first,
            first.name.hasBytes("$each")
        {
            guard case .array(let each) = first.value else {
                throw .modifier("$each needs a list of values")
            }
            values = each
        }
        for value in values { try value.checkFieldNames() }
        return values
    }

    private func isDate(_ operand: EJSON) -> Bool {
        switch operand {
        case .bool(let value): return value
        case .object(let object):
            if case .string(let type) = object["$type"] { return type.hasBytes("date") }
            return false
        default: return false
        }
    }
}

extension FieldPath {
    /// A path of a modifier, in which every part must be usable as the name of a field.
    fileprivate init(modifying text: String) throws(RealtimeError) {
        try self.init(text)
        for part in parts {
            guard !part.bytes.isEmpty, !part.name.isOperatorName, !part.bytes.contains(0) else {
                throw .modifier(
                    "the path \(text) has a part that is empty, begins with $ or contains NUL")
            }
        }
    }
}

extension RealtimeError {
    static func modifier(_ reason: String) -> RealtimeError {
        RealtimeError(.invalidArgument, "invalid modifier: \(reason)")
    }
}
