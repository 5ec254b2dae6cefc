import Wire

/// What `$all` requires: values, each of which one of a document's values must equal. The time
/// grows with their number and the document's, not with the product.
struct RequiredValues: Sendable {
    private var values: [EJSON] = []
    /// Whether null is required, which a missing value equals too.
    private var includesNull = false
    private(set) var count = 0

    /// Whether there are so many that a set of the document's values is worth its cost.
    var isMany: Bool { count > EJSONSet.mostFew }

    /// - Parameter value: nil for null.
    mutating func insert(_ value: EJSON?) {
        count += 1
        if let value { values.append(value) } else { includesNull = true }
    }

    /// - Parameters:
    ///   - value: nil if it is missing.
    ///   - isExplicitArray: whether the value is one even if it is an array.
    func areMet(by value: EJSON?, isExplicitArray: Bool) -> Bool {
        areMet(by: [PathBranch(value: value, isExplicitArray: isExplicitArray, indexes: [])])
    }

    func areMet(by branches: [PathBranch]) -> Bool {
        var found = EJSONSet()
        var foundNull = false
        func insert(_ value: EJSON) {
            if value.kind == .null { foundNull = true } else { found.insert(value) }
        }
        for branch in branches {
            insert(branch.value ?? .null)
            if case .array(let elements) = branch.value, !branch.isExplicitArray {
                for element in elements { insert(element) }
            }
        }
        return (!includesNull || foundNull) && values.allSatisfy { found.contains($0) }
    }
}
