import Wire

/// What a path led to.
struct PathBranch {
    /// nil if the field is missing.
    let value: EJSON?
    /// Whether the value is an array that the path's last part, an index, named. Such an array is
    /// one value, and its elements are not.
    let isExplicitArray: Bool
    /// The array elements on the way: the element's index, followed by `explicitIndex` if the path
    /// named the index. Equal for two paths into one document that pass through the same elements.
    let indexes: [Int]

    static let explicitIndex = -1
}

/// Follows a path through a document. At an array it takes the element that a numeric part names,
/// and besides searches every element that is an object. So a path can lead to many values, or,
/// because of an array, to none.
struct PathSearch {
    private let path: FieldPath
    /// In a sort path, a numeric part at an array is an index and nothing else.
    private let isSorting: Bool
    private var indexes: [Int] = []

    init(_ path: FieldPath, isSorting: Bool = false) {
        self.path = path
        self.isSorting = isSorting
    }

    /// Calls `visit` with each value until it returns true.
    /// - Parameters:
    ///   - value: a document's fields, or a value inside a document. A value that is neither an
    ///     object nor an array has no fields.
    ///   - id: the document's id, nil for a value inside a document.
    /// - Returns: whether `visit` returned true.
    mutating func first(
        in value: EJSON, id: DocumentID? = nil, where visit: (PathBranch) -> Bool
    ) -> Bool {
        if path.isID, let id { return follow(id.value, fromArray: false, part: 0, visit) }
        return switch value {
        case .object(let fields): search(fields, part: 0, visit)
        case .array(let elements): search(elements, part: 0, visit)
        default: visit(PathBranch(value: nil, isExplicitArray: false, indexes: indexes))
        }
    }

    /// All values, with the same parameters.
    mutating func all(in value: EJSON, id: DocumentID? = nil) -> [PathBranch] {
        var branches: [PathBranch] = []
        _ = first(in: value, id: id) {
            branches.append($0)
            return false
        }
        return branches
    }

    private mutating func search(
        _ fields: EJSONObject, part: Int, _ visit: (PathBranch) -> Bool
    ) -> Bool {
        let value = path.parts[part].bytes.withUnsafeBytes { fields[$0] }
        return follow(value, fromArray: false, part: part, visit)
    }

    private mutating func search(
        _ elements: [EJSON], part: Int, _ visit: (PathBranch) -> Bool
    ) -> Bool {
        let name = path.parts[part]
        guard let index = name.index, index < elements.count else { return false }
        indexes += [index, PathBranch.explicitIndex]
        defer { indexes.removeLast(2) }
        let value = name.hasLeadingZeros ? nil : elements[index]
        return follow(value, fromArray: true, part: part, visit)
    }

    /// Continues with what the part led to. Inlined, the recursion would become large.
    @inline(never)
    private mutating func follow(
        _ value: EJSON?, fromArray: Bool, part: Int, _ visit: (PathBranch) -> Bool
    ) -> Bool {
        let next = part + 1
        switch value {
        case _ where next == path.parts.count:
            var isArray = false
            if case .array = value { isArray = true }
            return visit(
                PathBranch(
                    value: value, isExplicitArray: fromArray && isArray, indexes: indexes))
        case .object(let fields):
            return search(fields, part: next, visit)
        case .array(let elements):
            return search(elements, part: next, visit)
                || searchObjects(in: elements, part: next, visit)
        default:
            if fromArray { return false }
            return visit(PathBranch(value: nil, isExplicitArray: false, indexes: indexes))
        }
    }

    private mutating func searchObjects(
        in elements: [EJSON], part: Int, _ visit: (PathBranch) -> Bool
    ) -> Bool {
        if isSorting, path.parts[part].index != nil { return false }
        for (index, element) in elements.enumerated() {
            guard case .object(let fields) = element else { continue }
            indexes.append(index)
            defer { indexes.removeLast() }
            if search(fields, part: part, visit) { return true }
        }
        return false
    }
}
