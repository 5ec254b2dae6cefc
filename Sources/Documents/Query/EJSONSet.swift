import Wire

/// A set of values, compared as queries compare them. Finding one costs the same in a large set as
/// in a small one.
struct EJSONSet: Sendable {
    // Only one of them has values.
    private var few: [EJSON] = []
    private var many: Set<EJSONKey> = []

    /// As many are compared one by one, which is faster than a hash.
    static let mostFew = 8

    init(_ values: [EJSON] = []) {
        for value in values { insert(value) }
    }

    func contains(_ value: EJSON) -> Bool {
        many.isEmpty
            ? few.contains { $0.equals(value, keyOrder: true) } : many.contains(EJSONKey(value))
    }

    /// - Returns: whether the value is new.
    @discardableResult
    mutating func insert(_ value: EJSON) -> Bool {
        guard many.isEmpty else { return many.insert(EJSONKey(value)).inserted }
        guard !contains(value) else { return false }
        few.append(value)
        guard few.count > EJSONSet.mostFew else { return true }
        many = Set(few.map { EJSONKey($0) })
        few = []
        return true
    }
}
