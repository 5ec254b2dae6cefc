package import Wire

/// A document that a query found.
package struct Found: Sendable, Equatable {
    package let id: DocumentID
    /// Without the `_id`.
    package let fields: EJSONObject

    package init(id: DocumentID, fields: EJSONObject) {
        self.id = id
        self.fields = fields
    }
}

/// A selector with the order, the range and the fields of its results.
package struct Query: Sendable {
    package let selector: Selector
    /// nil for the natural order.
    package let sort: SortOrder?
    package let skip: Int
    /// How many documents are returned at most; nil if there is no limit.
    package let limit: Int?
    package let projection: Projection?
    /// How many steps the regular expressions may take: see `SearchBudget`.
    package var maximumSteps = SearchBudget.maximumSteps

    /// Whether results contain the documents' ids.
    package var includesID: Bool { projection?.includesID ?? true }
    /// Whether a document's change can let another one enter or leave the results.
    package var hasRange: Bool { skip > 0 || limit != nil }

    /// - Parameters:
    ///   - selector: see `Selector`.
    ///   - options: an object with `sort`, `skip`, `limit` and `fields`, each optional; or null.
    ///     `projection` is another name of `fields`.
    /// - Throws: `.invalidArgument` with the reason, also if one is nested too deep.
    package init(selector: EJSON, options: EJSON = .null) throws(RealtimeError) {
        try selector.checkDepth("the selector")
        try options.checkDepth("the query's options")
        self.selector = try Selector(selector)
        var given = EJSONObject()
        switch options {
        case .object(let object): given = object
        case .null: break
        default:
            throw RealtimeError(.invalidArgument, "a query's options must be an object")
        }
        for option in given.fields where !Query.options.contains(where: option.name.hasBytes) {
            throw RealtimeError(
                .invalidArgument,
                "a query has no option \(option.name); there are sort, skip, limit, fields and "
                    + "projection")
        }
        let sort = try given.option("sort").map(SortOrder.init)
        self.sort = sort.map { $0.isEmpty } ?? true ? nil : sort
        skip = try Query.count(given.option("skip"), "skip")
        let limit = try Query.count(given.option("limit"), "limit")
        self.limit = limit == 0 ? nil : limit
        let fields = given.option("fields")
        let projection = given.option("projection")
        guard fields == nil || projection == nil else {
            throw RealtimeError(
                .invalidArgument, "a query has fields and projection, which are the same option")
        }
        self.projection = try (fields ?? projection).map(Projection.init)
    }

    private static let options: [StaticString] = ["sort", "skip", "limit", "fields", "projection"]

    /// - Parameter documents: the collection's documents in natural order. If the selector names
    ///   ids, those documents are enough.
    /// - Returns: the selected documents in the query's order, with the chosen fields.
    /// - Throws: `.invalidArgument` if the regular expressions take more than `maximumSteps`.
    package func results(
        of documents: some Sequence<(DocumentID, EJSONObject)>
    ) throws(RealtimeError) -> [Found] {
        // As in Meteor: the one document of an id cannot be skipped to.
        if selector.isID, skip > 0 { return [] }
        var search = SearchBudget(steps: maximumSteps)
        var found: [Found] = []
        for (id, fields) in documents where selector.matches(fields, id: id, &search) {
            found.append(Found(id: id, fields: fields))
            if sort == nil, let limit, found.count - skip == limit { break }
        }
        try search.check()
        if let sort { found = sort.sorted(found) { sort.key(of: $0.fields, id: $0.id) } }
        let range = found.dropFirst(skip).prefix(limit ?? found.count)
        guard let projection else { return Array(range) }
        return range.map { Found(id: $0.id, fields: projection.apply($0.fields)) }
    }

    private static func count(_ value: EJSON?, _ name: StaticString) throws(RealtimeError) -> Int {
        switch value {
        case nil: return 0
        case .number(let number):
            guard let count = Int(exactly: number), count >= 0 else { fallthrough }
            return count
        default:
            throw RealtimeError(
                .invalidArgument, "\(name) must be a whole number of 0 or more")
        }
    }
}

extension EJSONObject {
    /// nil if the option is missing or null.
    fileprivate func option(_ name: String) -> EJSON? {
        switch self[name] {
        case nil, .null: nil
        case let value: value
        }
    }
}
