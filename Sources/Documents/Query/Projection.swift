package import Wire

/// Chooses which fields of a document a query returns: either only some, or all but some.
package struct Projection: Sendable {
    /// A part of a path, or of several that begin in the same way.
    private final class Node: Sendable {
        /// By name; none stand for the whole field.
        let children: ByteTable<Node>

        init(_ children: ByteTable<Node>) { self.children = children }
    }

    private let isIncluding: Bool
    private let fields: ByteTable<Node>
    /// Whether results contain the document's `_id`.
    package let includesID: Bool

    /// - Parameter value: an object with 1 or true for each path to include, or 0 or false for each
    ///   one to exclude.
    /// - Throws: `.invalidArgument` with the reason.
    package init(_ value: EJSON) throws(RealtimeError) {
        guard case .object(let rules) = value else { throw .projection("an object is expected") }
        var paths: [[String]] = []
        var isIncluding: Bool?
        var includesID = true
        for rule in rules.fields {
            let isIncluded = try Projection.isIncluded(rule)
            let isID = rule.name.hasBytes("_id")
            if isID { includesID = isIncluded }
            // Without its id, a document may be included or excluded.
            if isID, !isIncluded { continue }
            guard isIncluding ?? isIncluded == isIncluded else {
                throw .projection("it includes some fields and excludes others")
            }
            isIncluding = isIncluded
            if !isID { paths.append(try Projection.parts(rule.name)) }
        }
        self.isIncluding = isIncluding ?? false
        self.includesID = includesID
        fields = try Projection.tree(paths, depth: 0)
    }

    /// - Parameter fields: a document's fields without its `_id`.
    /// - Returns: the chosen ones.
    package func apply(_ fields: EJSONObject) -> EJSONObject {
        Projection.apply(self.fields, isIncluding, to: fields)
    }

    private static func apply(
        _ nodes: ByteTable<Node>, _ isIncluding: Bool, to fields: EJSONObject
    ) -> EJSONObject {
        var result = EJSONObject()
        for field in fields.fields {
            switch nodes[field.name] {
            case nil where isIncluding: continue
            case nil: result.append(field.name, field.value)
            case .some(let node) where node.children.isEmpty:
                if isIncluding { result.append(field.name, field.value) }
            case .some(let node):
                guard let value = apply(node.children, isIncluding, toValue: field.value) else {
                    continue
                }
                result.append(field.name, value)
            }
        }
        return result
    }

    /// Goes into objects and lists. Any other value has no fields: nil if some are included.
    private static func apply(
        _ nodes: ByteTable<Node>, _ isIncluding: Bool, toValue value: EJSON
    ) -> EJSON? {
        switch value {
        case .object(let fields): .object(apply(nodes, isIncluding, to: fields))
        case .array(let elements):
            .array(elements.compactMap { apply(nodes, isIncluding, toValue: $0) })
        default: isIncluding ? nil : value
        }
    }

    // MARK: Compiling

    private static func isIncluded(_ rule: EJSONObject.Field) throws(RealtimeError) -> Bool {
        switch rule.value {
        case .bool(let isIncluded): return isIncluded
        case .number(1): return true
        case .number(0): return false
        default: throw .projection("\(rule.name) must be 0, 1, false or true")
        }
    }

    private static func parts(_ path: String) throws(RealtimeError) -> [String] {
        let parts = try FieldPath(path).parts.map { $0.name }
        guard !parts.contains(where: { $0.hasBytes("$") }) else {
            throw .projection("the operator $ in \(path) is not supported")
        }
        return parts
    }

    /// - Parameter paths: paths with equal parts before `depth`.
    private static func tree(
        _ paths: [[String]], depth: Int
    ) throws(RealtimeError) -> ByteTable<Node> {
        var groups: [(name: String, paths: [[String]])] = []
        var known = ByteTable<Int>()
        for path in paths {
            let name = path[depth]
            if let group = known[name] {
                groups[group].paths.append(path)
            } else {
                known[name] = groups.count
                groups.append((name, [path]))
            }
        }
        var nodes = ByteTable<Node>()
        for group in groups {
            let isLeaf = group.paths.contains { $0.count == depth + 1 }
            guard !isLeaf || group.paths.count == 1 else {
                throw .projection("\(group.name) is named as a whole and in parts")
            }
            nodes[group.name] = Node(
                isLeaf ? ByteTable() : try tree(group.paths, depth: depth + 1))
        }
        return nodes
    }
}

extension RealtimeError {
    fileprivate static func projection(_ reason: String) -> RealtimeError {
        RealtimeError(.invalidArgument, "invalid projection: \(reason)")
    }
}
