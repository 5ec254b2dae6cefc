import Wire

/// Turns a selector into tests.
struct SelectorCompiler {
    private final class Size {
        var instructions = 0
    }

    /// How deep the selector is nested.
    private let depth: Int
    /// Of its regular expressions.
    private let size: Size

    init() {
        depth = 0
        size = Size()
    }

    private init(depth: Int, _ size: Size) throws(RealtimeError) {
        guard depth <= Selector.maximumDepth else {
            throw .selector("it is nested more than \(Selector.maximumDepth) levels deep")
        }
        self.depth = depth
        self.size = size
    }

    private func deeper() throws(RealtimeError) -> SelectorCompiler {
        try SelectorCompiler(depth: depth + 1, size)
    }

    // MARK: Documents

    func document(_ selector: EJSONObject) throws(RealtimeError) -> DocumentTest {
        var tests: [DocumentTest] = []
        for field in selector.fields {
            if field.name.hasBytes("$comment") { continue }
            if field.name.isOperatorName {
                tests.append(try logical(field.name, field.value))
            } else {
                tests.append(.field(try FieldPath(field.name), try value(field.value)))
            }
        }
        return tests.count == 1 ? tests[0] : .and(tests)
    }

    private func logical(_ name: String, _ operand: EJSON) throws(RealtimeError) -> DocumentTest {
        if name.hasBytes("$and") { return .and(try documents(name, operand)) }
        if name.hasBytes("$or") { return .or(DocumentTest.merging(try documents(name, operand))) }
        if name.hasBytes("$nor") { return .nor(DocumentTest.merging(try documents(name, operand))) }
        throw .selector("\(name) is not supported")
    }

    private func documents(
        _ name: String, _ operand: EJSON
    ) throws(RealtimeError) -> [DocumentTest] {
        guard case .array(let selectors) = operand, !selectors.isEmpty else {
            throw .selector("\(name) needs a list of selectors")
        }
        let compiler = try deeper()
        var tests: [DocumentTest] = []
        for selector in selectors {
            guard case .object(let selector) = selector else {
                throw .selector("\(name) needs a list of selectors, and each is an object")
            }
            tests.append(try compiler.document(selector))
        }
        return tests
    }

    // MARK: Values

    /// A value to equal, a regular expression to match, or an object with operators.
    func value(_ operand: EJSON) throws(RealtimeError) -> ValueTest {
        if case .pattern(let pattern) = operand {
            return .any(.pattern(try test(pattern)))
        }
        guard case .object(let operators) = operand, try operators.hasOperators() else {
            return .any(try equality(operand))
        }
        var tests: [ValueTest] = []
        for field in operators.fields {
            tests.append(try test(field.name, field.value, among: operators))
        }
        return tests.count == 1 ? tests[0] : .all(tests)
    }

    private func test(
        _ name: String, _ operand: EJSON, among operators: EJSONObject
    ) throws(RealtimeError) -> ValueTest {
        guard let known = QueryOperator(name) else {
            throw .selector("\(name) is not supported")
        }
        switch known {
        case .eq: return .any(try equality(operand))
        case .ne: return .not(.any(try equality(operand)))
        case .gt: return .any(.compares(.greater, operand))
        case .gte: return .any(.compares(.greaterOrEqual, operand))
        case .lt: return .any(.compares(.less, operand))
        case .lte: return .any(.compares(.lessOrEqual, operand))
        case .in: return .any(try membership(name, operand))
        case .nin: return .not(.any(try membership(name, operand)))
        case .exists: return operand.isTruthy ? .any(.exists) : .not(.any(.exists))
        case .type: return .any(.type(try type(operand)))
        case .mod: return .any(try remainder(operand))
        case .size: return .any(.size(try size(operand)))
        case .all: return try containment(operand)
        case .elemMatch: return .any(.hasElement(try deeper().element(name, operand)))
        case .not: return .not(try deeper().value(operand))
        case .regex: return .any(.pattern(try pattern(operand, operators)))
        case .options:
            guard operators["$regex"] != nil else { throw .selector("$options needs $regex") }
            return .all([])
        }
    }

    private func equality(_ operand: EJSON) throws(RealtimeError) -> ElementTest {
        if case .object(let object) = operand, try object.hasOperators() {
            throw .selector("operators are not possible in a value to be equal to")
        }
        return .equals(operand.kind == .null ? nil : operand)
    }

    private func membership(
        _ name: String, _ operand: EJSON
    ) throws(RealtimeError) -> ElementTest {
        guard case .array(let values) = operand else {
            throw .selector("\(name) needs a list of values")
        }
        var tests: [ElementTest] = []
        for value in values {
            if case .pattern(let pattern) = value {
                tests.append(.pattern(try test(pattern)))
            } else {
                tests.append(try equality(value))
            }
        }
        return tests.isEmpty ? .among(ValueSet()) : .any(of: tests)
    }

    private func type(_ operand: EJSON) throws(RealtimeError) -> Double {
        switch operand {
        case .number(let number):
            guard number != 0, number >= -1, number <= 19 || number == 127 else {
                throw .selector("$type does not know the number of a type")
            }
            return number
        case .string(let name):
            guard let kind = EJSON.Kind(name: name) else {
                throw .selector("$type does not know the type \(name)")
            }
            return Double(kind.rawValue)
        default: throw .selector("$type needs a number or a name")
        }
    }

    private func remainder(_ operand: EJSON) throws(RealtimeError) -> ElementTest {
        guard case .array(let numbers) = operand, numbers.count == 2,
            case .number(let divisor) = numbers[0], case .number(let remainder) = numbers[1]
        else {
            throw .selector("$mod needs a list of two numbers")
        }
        return .remainder(divisor: divisor, is: remainder)
    }

    /// A text counts as 0, as in MongoDB.
    private func size(_ operand: EJSON) throws(RealtimeError) -> Double {
        switch operand {
        case .number(let number): return number
        case .string: return 0
        default: throw .selector("$size needs a number")
        }
    }

    private func containment(_ operand: EJSON) throws(RealtimeError) -> ValueTest {
        guard case .array(let values) = operand else {
            throw .selector("$all needs a list of values")
        }
        if values.isEmpty { return .nothing }
        var required = RequiredValues()
        var tests: [ValueTest] = []
        for value in values {
            if case .pattern = value {
                tests.append(try self.value(value))
                continue
            }
            let test = try equality(value)
            if case .equals(let value) = test { required.insert(value) }
            tests.append(.any(test))
        }
        // Otherwise each value is looked for by itself, which is faster for a few.
        guard required.count == tests.count, required.isMany else { return .all(tests) }
        return .includes(required)
    }

    private func pattern(
        _ operand: EJSON, _ operators: EJSONObject
    ) throws(RealtimeError) -> PatternTest {
        var (source, flags) = ("", "")
        switch operand {
        case .string(let text): source = text
        case .pattern(let pattern): (source, flags) = (pattern.source, pattern.flags)
        default: throw .selector("$regex needs a regular expression")
        }
        if let options = operators["$options"] {
            guard case .string(let options) = options,
                options.utf8.allSatisfy({ "gim".utf8.contains($0) })
            else {
                throw .selector("$options may be i, m and g")
            }
            flags = options
        }
        return try test(source, flags)
    }

    private func test(_ pattern: EJSONPattern) throws(RealtimeError) -> PatternTest {
        try test(pattern.source, pattern.flags)
    }

    private func test(_ source: String, _ flags: String) throws(RealtimeError) -> PatternTest {
        let test = try PatternTest(source, flags: flags)
        size.instructions += test.size
        guard size.instructions <= Selector.maximumInstructions else {
            throw .selector(
                "its regular expressions have more than \(Selector.maximumInstructions) steps")
        }
        return test
    }

    // MARK: Elements

    /// Operators for an element, or a selector for elements that are documents.
    func element(_ name: String, _ operand: EJSON) throws(RealtimeError) -> ElementSelector {
        guard case .object(let operand) = operand else {
            throw .selector("\(name) needs an object")
        }
        let operators = operand.fields.filter { field in
            !["$and", "$or", "$nor", "$comment"].contains { field.name.hasBytes($0) }
        }
        guard !operators.isEmpty, operators.allSatisfy({ $0.name.isOperatorName }) else {
            return .document(try document(operand))
        }
        return .value(try value(.object(operand)))
    }
}

extension RealtimeError {
    static func selector(_ reason: String) -> RealtimeError {
        RealtimeError(.invalidArgument, "invalid selector: \(reason)")
    }
}

extension EJSONObject {
    /// Whether the fields are operators.
    /// - Throws: `.invalidArgument` if only some are.
    func hasOperators() throws(RealtimeError) -> Bool {
        let count = fields.count { $0.name.isOperatorName }
        guard count == 0 || count == fields.count else {
            throw RealtimeError(
                .invalidArgument, "an object has operators as well as other fields")
        }
        return count > 0
    }
}

extension EJSON {
    /// Whether JavaScript takes the value for true.
    var isTruthy: Bool {
        switch self {
        case .null: false
        case .bool(let value): value
        case .number(let value): value != 0 && !value.isNaN
        case .string(let text): !text.isEmpty
        default: true
        }
    }
}

extension EJSON.Kind {
    init?(name: String) {
        let names: [(StaticString, EJSON.Kind)] = [
            ("double", .number), ("string", .string), ("object", .object), ("array", .array),
            ("binData", .bytes), ("objectId", .objectID), ("bool", .bool), ("date", .date),
            ("null", .null), ("regex", .pattern),
        ]
        guard let known = names.first(where: { name.hasBytes($0.0) }) else { return nil }
        self = known.1
    }
}

/// The operators for values.
private enum QueryOperator {
    case eq, ne, gt, gte, lt, lte, `in`, nin, exists, type, mod, size, all, elemMatch, not, regex
    case options

    init?(_ name: String) {
        let names: [(StaticString, QueryOperator)] = [
            ("$eq", .eq), ("$ne", .ne), ("$gt", .gt), ("$gte", .gte), ("$lt", .lt),
            ("$lte", .lte), ("$in", .in), ("$nin", .nin), ("$exists", .exists), ("$type", .type),
            ("$mod", .mod), ("$size", .size), ("$all", .all), ("$elemMatch", .elemMatch),
            ("$not", .not), ("$regex", .regex), ("$options", .options),
        ]
        guard let known = names.first(where: { name.hasBytes($0.0) }) else { return nil }
        self = known.1
    }
}
