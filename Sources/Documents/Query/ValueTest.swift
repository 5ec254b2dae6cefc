import Wire

/// What a selector requires of the values that a path leads to.
indirect enum ValueTest: Sendable {
    /// At least one value passes.
    case any(ElementTest)
    case not(ValueTest)
    /// Different values may pass the different tests.
    case all([ValueTest])
    /// Together they equal all of these.
    case includes(RequiredValues)

    static var nothing: ValueTest { .not(.all([])) }

    /// Tests the values of a path.
    /// - Parameter budget: if it is exceeded, the result means nothing.
    func matches(
        _ path: FieldPath, in fields: EJSONObject, id: DocumentID?, _ budget: inout MatchBudget
    ) -> Bool {
        if path.parts.count == 1 {
            // Most paths are names of fields, which lead to one value.
            if path.isID, let id { return matches(field: id.value, &budget) }
            return matches(field: path.parts[0].bytes.withUnsafeBytes { fields[$0] }, &budget)
        }
        return matches(path, in: .object(fields), id: id, &budget)
    }

    /// Tests the values of a path below a value.
    /// - Parameter id: the id of a document, whose fields the value is.
    func matches(
        _ path: FieldPath, in value: EJSON, id: DocumentID? = nil, _ budget: inout MatchBudget
    ) -> Bool {
        var search = PathSearch(path)
        switch self {
        case .any(let test):
            return search.first(in: value, id: id) {
                test.matches($0.value, isExplicitArray: $0.isExplicitArray, &budget)
            }
        case .not(let test): return !test.matches(path, in: value, id: id, &budget)
        case .all(let tests):
            return tests.allSatisfy { $0.matches(path, in: value, id: id, &budget) }
        case .includes(let required): return required.areMet(by: search.all(in: value, id: id))
        }
    }

    /// Tests a field's value, or nil for a missing field.
    private func matches(field value: EJSON?, _ budget: inout MatchBudget) -> Bool {
        switch self {
        case .any(let test): test.matches(value, isExplicitArray: false, &budget)
        case .not(let test): !test.matches(field: value, &budget)
        case .all(let tests): tests.allSatisfy { $0.matches(field: value, &budget) }
        case .includes(let required): required.areMet(by: value, isExplicitArray: false)
        }
    }

    /// Tests an array element, which is one value even if it is an array itself.
    func matches(element: EJSON, _ budget: inout MatchBudget) -> Bool {
        switch self {
        case .any(let test): test.matches(element, &budget)
        case .not(let test): !test.matches(element: element, &budget)
        case .all(let tests): tests.allSatisfy { $0.matches(element: element, &budget) }
        case .includes(let required): required.areMet(by: element, isExplicitArray: true)
        }
    }
}

/// A test of one value.
indirect enum ElementTest: Sendable {
    enum Comparison { case less, lessOrEqual, greater, greaterOrEqual }

    /// nil equals a missing value, too.
    case equals(EJSON?)
    /// nil is null.
    case compares(Comparison, EJSON)
    case remainder(divisor: Double, is: Double)
    case among(ValueSet)
    case size(Double)
    case type(Double)
    case exists
    case pattern(PatternTest)
    case hasElement(ElementSelector)

    /// Tests a value, and, as the operator wants it, the elements of an array.
    func matches(
        _ value: EJSON?, isExplicitArray: Bool, _ budget: inout MatchBudget
    ) -> Bool {
        guard case .array(let elements) = value, !isExplicitArray else {
            return matches(value, &budget)
        }
        switch self {
        case .size, .hasElement: return matches(value, &budget)
        case .type: return elements.contains { matches($0, &budget) }
        default:
            return matches(value, &budget) || elements.contains { matches($0, &budget) }
        }
    }

    func matches(_ value: EJSON?, _ budget: inout MatchBudget) -> Bool {
        switch self {
        case .equals(let operand?): value?.equals(operand, keyOrder: true) ?? false
        case .equals(nil): value == nil || value?.kind == .null
        case .compares(let comparison, let operand): comparison.holds(value ?? .null, operand)
        case .remainder(let divisor, let remainder):
            if case .number(let value) = value {
                value.truncatingRemainder(dividingBy: divisor) == remainder
            } else {
                false
            }
        case .among(let values): values.contains(value, &budget)
        case .size(let count):
            if case .array(let elements) = value { Double(elements.count) == count } else { false }
        case .type(let type): value.map { Double($0.kind.rawValue) == type } ?? false
        case .exists: value != nil
        case .pattern(let test): test.matches(value, &budget)
        case .hasElement(let selector):
            if case .array(let elements) = value {
                elements.contains { selector.matches($0, &budget) }
            } else {
                false
            }
        }
    }
}

extension ElementTest.Comparison {
    /// Only values of one kind are compared, NaN is neither less nor greater than any number, and
    /// an array as the operand never matches.
    func holds(_ value: EJSON, _ operand: EJSON) -> Bool {
        guard value.kind == operand.kind, operand.kind != .array, !value.isNaN, !operand.isNaN
        else { return false }
        let order = EJSON.order(value, operand)
        return switch self {
        case .less: order < 0
        case .lessOrEqual: order <= 0
        case .greater: order > 0
        case .greaterOrEqual: order >= 0
        }
    }
}

extension EJSON {
    fileprivate var isNaN: Bool {
        switch self {
        case .number(let value): value.isNaN
        case .decimal: decimalValue == nil
        default: false
        }
    }
}
