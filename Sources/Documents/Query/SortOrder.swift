package import Wire

/// An order of documents, by one or more paths.
package struct SortOrder: Sendable {
    /// What a document is sorted by: one value for each path, nil where the field is missing.
    package struct Key: Sendable {
        fileprivate let values: [EJSON?]
        let prefix: SortPrefix

        /// An estimate of the memory that the values take.
        var storedBytes: Int { values.reduce(0) { $0 + ($1?.storedBytes(name: "") ?? 0) } }
    }

    /// The most paths.
    package static let maximumPaths = 32

    private struct Criterion {
        let path: FieldPath
        let isDescending: Bool
    }

    private let criteria: [Criterion]

    /// Whether the order names no path, so that all documents are equal.
    package var isEmpty: Bool { criteria.isEmpty }

    /// - Parameter value: `{a: 1, b: -1}`, where a negative number means descending, or a list such
    ///   as `["a", ["b", "desc"], ["c", -1]]`.
    /// - Throws: `.invalidArgument` with the reason.
    package init(_ value: EJSON) throws(RealtimeError) {
        var criteria: [Criterion] = []
        switch value {
        case .object(let paths):
            for field in paths.fields {
                guard case .number(let direction) = field.value else {
                    throw .sort("the direction of \(field.name) must be 1 or -1")
                }
                criteria.append(try SortOrder.criterion(field.name, direction < 0))
            }
        case .array(let elements):
            for element in elements { criteria.append(try SortOrder.criterion(element)) }
        default: throw .sort("an object or a list is expected")
        }
        guard criteria.count <= SortOrder.maximumPaths else {
            throw .sort("\(criteria.count) paths, at most \(SortOrder.maximumPaths) are possible")
        }
        self.criteria = criteria
    }

    /// - Parameter fields: the document's fields without its `_id`.
    package func key(of fields: EJSONObject, id: DocumentID) -> Key {
        key(of: .object(fields), id: id)
    }

    /// The key of an array element, for `$push` with `$sort`.
    func key(of element: EJSON) -> Key {
        key(of: element, id: nil)
    }

    /// - Returns: a negative number if `first` comes first, a positive one if `second` does, 0 if
    ///   the order does not say. Then the documents stay in their natural order.
    package func compare(_ first: Key, _ second: Key) -> Int {
        SortPrefix.order(first.prefix, second.prefix) ?? compareValues(first, second)
    }

    /// Compares keys whose prefixes do not decide.
    func compareValues(_ first: Key, _ second: Key) -> Int {
        for (position, criterion) in criteria.enumerated() {
            let order = EJSON.order(first.values[position], second.values[position])
            if order != 0 { return criterion.isDescending ? -order : order }
        }
        return 0
    }

    /// The values in this order. Equal ones keep their order.
    func sorted<Value>(_ values: [Value], by key: (Value) -> Key) -> [Value] {
        let keys = values.map(key)
        return values.indices.sorted { first, second in
            let order = compare(keys[first], keys[second])
            return order == 0 ? first < second : order < 0
        }.map { values[$0] }
    }

    // MARK: Keys

    /// The values that a path led to, each with the array elements on the way.
    private typealias Values = [(indexes: [Int], value: EJSON?)]

    /// A document has several keys if paths lead through an array: one for each element. Its first
    /// in this order counts.
    /// - Parameter id: the document's id, nil for an array element.
    private func key(of value: EJSON, id: DocumentID?) -> Key {
        let found = criteria.map { criterion in
            var search = PathSearch(criterion.path, isSorting: true)
            var values: Values = []
            for branch in search.all(in: value, id: id) { SortOrder.append(branch, to: &values) }
            return values.isEmpty ? [([], nil)] : values
        }
        guard let leading = found.first(where: { !$0[0].indexes.isEmpty }) else {
            return key(found.map { $0[0].value })
        }
        guard SortOrder.areParallel(found, to: leading) else {
            return key(zip(criteria, found).map(SortOrder.least))
        }
        var least = key([])
        for way in leading.indices {
            let key = key(found.map { $0[0].indexes.isEmpty ? $0[0].value : $0[way].value })
            if way == 0 || compare(key, least) < 0 { least = key }
        }
        return least
    }

    /// - Parameter values: one for each path.
    private func key(_ values: [EJSON?]) -> Key {
        var prefix = SortPrefix()
        for (criterion, value) in zip(criteria, values) {
            prefix.append(value, isDescending: criterion.isDescending)
        }
        return Key(values: values, prefix: prefix)
    }

    /// Adds a value, or an array's elements: no document is sorted by an array itself, except one
    /// that an index names.
    private static func append(_ branch: PathBranch, to values: inout Values) {
        guard case .array(let elements) = branch.value, !branch.isExplicitArray else {
            return values.append((branch.indexes, branch.value))
        }
        for (index, element) in elements.enumerated() {
            values.append((branch.indexes + [index], element))
        }
    }

    /// Whether all paths that lead through arrays lead through the same elements.
    private static func areParallel(_ found: [Values], to leading: Values) -> Bool {
        found.allSatisfy { values in
            values[0].indexes.isEmpty
                || (values.count == leading.count
                    && zip(values, leading).allSatisfy { $0.indexes == $1.indexes })
        }
    }

    /// Of the values of one path, the one that comes first in its direction.
    private static func least(_ criterion: Criterion, _ values: Values) -> EJSON? {
        var least = values[0].value
        for value in values.dropFirst() {
            let order = EJSON.order(value.value, least)
            if criterion.isDescending ? order > 0 : order < 0 { least = value.value }
        }
        return least
    }

    // MARK: Compiling

    private static func criterion(_ element: EJSON) throws(RealtimeError) -> Criterion {
        if case .string(let path) = element { return try criterion(path, false) }
        guard case .array(let pair) = element, pair.count == 1 || pair.count == 2,
            case .string(let path) = pair[0],
            let isDescending = pair.count == 1 ? false : isDescending(pair[1])
        else {
            throw .sort(
                "a list contains paths and pairs such as [\"a\", \"desc\"] or [\"a\", -1]")
        }
        return try criterion(path, isDescending)
    }

    /// nil if the value is not a direction. Meteor's client takes -1 in a list for ascending,
    /// unlike its server.
    private static func isDescending(_ direction: EJSON) -> Bool? {
        switch direction {
        case .number(1): return false
        case .number(-1): return true
        case .string(let word) where word.hasBytes("asc"): return false
        case .string(let word) where word.hasBytes("desc"): return true
        default: return nil
        }
    }

    private static func criterion(
        _ path: String, _ isDescending: Bool
    ) throws(RealtimeError) -> Criterion {
        guard !path.isEmpty, !path.isOperatorName else {
            throw .sort("a path must not be empty or begin with $")
        }
        return Criterion(path: try FieldPath(path), isDescending: isDescending)
    }
}

extension RealtimeError {
    fileprivate static func sort(_ reason: String) -> RealtimeError {
        RealtimeError(.invalidArgument, "invalid sort order: \(reason)")
    }
}
