import Wire

/// What a modifier does with one field.
enum FieldOperation: Sendable {
    enum Arithmetic { case add, multiply, minimum, maximum }

    case set(EJSON)
    case unset
    case number(Arithmetic, Double)
    case rename(to: FieldPath)
    case push(PushOperation)
    case addToSet([EJSON])
    case pop(first: Bool)
    case pull(ElementSelector)
    /// Removes the elements that equal one of these.
    case remove(EJSONSet)

    /// Whether missing levels of the path are created. Otherwise nothing is done without them.
    var createsPath: Bool {
        switch self {
        case .set, .number, .push, .addToSet: true
        case .unset, .rename, .pop, .pull, .remove: false
        }
    }

    /// - Parameter value: the field's value, nil if the field is missing.
    /// - Returns: the new value; null if the operation makes none of the old one.
    func result(_ value: EJSON?) throws(RealtimeError) -> EJSON {
        switch self {
        case .set(let new): return new
        case .unset, .rename: return .null
        case .number(let operation, let operand):
            return .number(try FieldOperation.number(operation, value, operand))
        case .push(let push): return .array(push.result(try FieldOperation.list(value)))
        case .addToSet(let additions):
            var elements = try FieldOperation.list(value)
            if additions.count == 1 {
                // Faster than a set.
                let isKnown = elements.contains { $0.equals(additions[0], keyOrder: true) }
                return .array(isKnown ? elements : elements + additions)
            }
            var known = EJSONSet(elements)
            for addition in additions where known.insert(addition) { elements.append(addition) }
            return .array(elements)
        case .pop(let first):
            let elements = try FieldOperation.list(value)
            return .array(Array(first ? elements.dropFirst() : elements.dropLast()))
        case .pull(let selector):
            var budget = MatchBudget()
            let elements = try FieldOperation.list(value).filter { !selector.matches($0, &budget) }
            guard !budget.isExceeded else {
                throw .modifier(
                    "$pull needs more than \(MatchBudget.maximumSteps) steps of regular expressions"
                )
            }
            return .array(elements)
        case .remove(let values):
            return .array(try FieldOperation.list(value).filter { !values.contains($0) })
        }
    }

    private static func number(
        _ operation: Arithmetic, _ value: EJSON?, _ operand: Double
    ) throws(RealtimeError) -> Double {
        switch (operation, value) {
        case (.multiply, nil): return 0
        case (_, nil): return operand
        case (.add, .number(let value)): return value + operand
        case (.multiply, .number(let value)): return value * operand
        case (.minimum, .number(let value)): return value > operand ? operand : value
        case (.maximum, .number(let value)): return value < operand ? operand : value
        default: throw .modifier("$inc, $mul, $min and $max change numbers only")
        }
    }

    /// A list's elements; none if the field is missing.
    private static func list(_ value: EJSON?) throws(RealtimeError) -> [EJSON] {
        switch value {
        case nil: return []
        case .array(let elements): return elements
        default:
            throw .modifier("$push, $addToSet, $pop, $pull and $pullAll change lists only")
        }
    }
}

/// `$push`: adds values to a list, then sorts and shortens it.
struct PushOperation: Sendable {
    private let values: [EJSON]
    private var position: Int?
    private var sort: SortOrder?
    /// How many elements remain: the first ones, or the last ones if the number is negative.
    private var slice: Int?

    /// - Parameter operand: a value to add, or an object with `$each` and perhaps `$position`,
    ///   `$sort` and `$slice`.
    init(_ operand: EJSON) throws(RealtimeError) {
        guard case .object(let options) = operand, let each = options["$each"] else {
            try operand.checkFieldNames()
            values = [operand]
            return
        }
        guard case .array(let each) = each else {
            throw .modifier("$each needs a list of values")
        }
        for value in each { try value.checkFieldNames() }
        values = each
        if let position = try PushOperation.number("$position", options) {
            guard position >= 0 else { throw .modifier("$position must not be negative") }
            self.position = Int(truncating: position)
        }
        if let slice = try PushOperation.number("$slice", options) {
            // A fraction between -1 and 0 keeps everything, as in JavaScript.
            self.slice = slice > -1 && slice < 0 ? Int.max : Int(truncating: slice)
        }
        guard let sort = options["$sort"], sort.isTruthy else { return }
        guard slice != nil else { throw .modifier("$sort needs $slice") }
        guard each.allSatisfy({ $0.kind == .object }) else {
            throw .modifier("$sort needs objects in $each")
        }
        self.sort = try SortOrder(sort)
    }

    func result(_ elements: [EJSON]) -> [EJSON] {
        var elements = elements
        elements.insert(contentsOf: values, at: min(position ?? elements.count, elements.count))
        if let sort { elements = sort.sorted(elements) { sort.key(of: $0) } }
        guard let slice else { return elements }
        return Array(slice < 0 ? elements.suffix(-max(slice, -Int.max)) : elements.prefix(slice))
    }

    private static func number(
        _ name: String, _ options: EJSONObject
    ) throws(RealtimeError) -> Double? {
        switch options[name] {
        case nil: return nil
        case .number(let number): return number
        default: throw .modifier("\(name) needs a number")
        }
    }
}

extension Int {
    /// The whole part of a number. 0 for NaN, and the nearest `Int` for a number out of range.
    fileprivate init(truncating number: Double) {
        if number.isNaN {
            self = 0
        } else {
            self = Int(exactly: number.rounded(.towardZero)) ?? (number < 0 ? Int.min : Int.max)
        }
    }
}
