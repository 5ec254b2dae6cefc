package import Wire

extension EJSON {
    /// The kinds of values that queries tell apart. `rawValue` is MongoDB's number of the kind,
    /// which `$type` takes.
    enum Kind: Int {
        case number = 1
        case string = 2
        case object = 3
        case array = 4
        case bytes = 5
        case objectID = 7
        case bool = 8
        case date = 9
        case null = 10
        case pattern = 11

        /// The kind's place in the order of values of different kinds (M17).
        var rank: Int {
            switch self {
            case .null: 0
            case .number: 1
            case .string: 2
            case .object: 3
            case .array: 4
            case .bytes: 5
            case .objectID: 6
            case .bool: 7
            case .date: 8
            case .pattern: 9
            }
        }
    }

    var kind: Kind {
        switch self {
        case .null: .null
        case .bool: .bool
        case .number, .decimal: .number
        case .string: .string
        case .array: .array
        case .object, .custom: .object
        case .date: .date
        case .bytes: .bytes
        case .objectID: .objectID
        case .pattern: .pattern
        }
    }

    /// Compares two values as queries and sort orders do: by kind, then within the kind. nil is a
    /// missing value, which comes before all others.
    /// - Returns: a negative number if `first` comes first, a positive one if `second` does, 0 if
    ///   neither does.
    package static func order(_ first: EJSON?, _ second: EJSON?) -> Int {
        guard let first else { return second == nil ? 0 : -1 }
        guard let second else { return 1 }
        switch (first, second) {
        case (.number(let first), .number(let second)): return orderNumbers(first, second)
        case (.string(let first), .string(let second)): return String.orderOfUTF16(first, second)
        case (.bool(let first), .bool(let second)): return (first ? 1 : 0) - (second ? 1 : 0)
        case (.date(let first), .date(let second)): return orderValues(first, second)
        case (.array(let first), .array(let second)): return orderLists(first, second)
        case (.object(let first), .object(let second)): return orderObjects(first, second)
        case (.bytes(let first), .bytes(let second)):
            return first.count == second.count
                ? orderBytes(first, second) : first.count - second.count
        case (.objectID(let first), .objectID(let second)):
            return String.orderOfUTF16(first.hex, second.hex)
        case (.pattern(let first), .pattern(let second)):
            let sources = String.orderOfUTF16(first.source, second.source)
            return sources == 0 ? String.orderOfUTF16(first.flags, second.flags) : sources
        case (.custom, .custom):
            return String.orderOfUTF16(first.canonicalText, second.canonicalText)
        case (.object, .custom): return -1
        case (.custom, .object): return 1
        case (.decimal, .decimal), (.decimal, .number), (.number, .decimal):
            return orderDecimals(first, second)
        default: return first.kind.rank - second.kind.rank
        }
    }

    /// By value. What has none comes first: NaN, then decimals whose texts are not numbers.
    private static func orderDecimals(_ first: EJSON, _ second: EJSON) -> Int {
        switch (first.decimalValue, second.decimalValue) {
        case (let first?, let second?): return DecimalValue.order(first, second)
        case (nil, .some): return -1
        case (.some, nil): return 1
        case (nil, nil):
            guard case .decimal(let first) = first else { return -1 }
            guard case .decimal(let second) = second else { return 1 }
            return String.orderOfUTF16(first, second)
        }
    }

    private static func orderValues<Value: Comparable>(_ first: Value, _ second: Value) -> Int {
        first < second ? -1 : (first == second ? 0 : 1)
    }

    /// NaN comes before all other numbers, so that sorting has one result.
    private static func orderNumbers(_ first: Double, _ second: Double) -> Int {
        if first < second { return -1 }
        if first > second { return 1 }
        return (first.isNaN ? 0 : 1) - (second.isNaN ? 0 : 1)
    }

    private static func orderLists(_ first: [EJSON], _ second: [EJSON]) -> Int {
        for (first, second) in zip(first, second) {
            let order = order(first, second)
            if order != 0 { return order }
        }
        return first.count - second.count
    }

    /// Compares objects as the lists key, value, key, value, ….
    private static func orderObjects(_ first: EJSONObject, _ second: EJSONObject) -> Int {
        for (first, second) in zip(first.fields, second.fields) {
            let names = String.orderOfUTF16(first.name, second.name)
            if names != 0 { return names }
            let values = order(first.value, second.value)
            if values != 0 { return values }
        }
        return first.count - second.count
    }

    private static func orderBytes(_ first: [UInt8], _ second: [UInt8]) -> Int {
        for (first, second) in zip(first, second) where first != second {
            return Int(first) - Int(second)
        }
        return 0
    }
}
