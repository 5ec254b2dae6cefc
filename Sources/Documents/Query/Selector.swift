package import Wire

/// Selects documents of a collection, as MongoDB's and Meteor's selectors do (M17). It is
/// compiled once, and then tests any number of documents.
package struct Selector: Sendable {
    /// How deep logical operators, `$not` and `$elemMatch` may be nested.
    package static let maximumDepth = 100
    /// The most instructions of all its regular expressions together.
    static let maximumInstructions = 200_000

    private let test: DocumentTest
    /// The ids of the only documents that the selector can match, in the order in which it names
    /// them; nil if it does not name ids. Even these documents must match.
    package let ids: [DocumentID]?
    /// Whether the selector is an id or nothing but `{_id: id}`.
    let isID: Bool

    /// - Parameter value: an id (text, number or ObjectID), or an object with the conditions. null
    ///   and an object whose `_id` is null match nothing.
    /// - Throws: `.invalidArgument` with the reason.
    package init(_ value: EJSON) throws(RealtimeError) {
        if let id = Selector.id(value) {
            self.init(.field(try FieldPath("_id"), .any(.equals(value))), [id], isID: true)
            return
        }
        guard value.isTruthy else {
            self.init(.or([]), [], isID: false)
            return
        }
        guard case .object(let selector) = value else {
            throw .selector("an id or an object is expected")
        }
        if let id = selector["_id"], !id.isTruthy {
            self.init(.or([]), [], isID: false)
            return
        }
        let isID = selector.count == 1 && selector["_id"].flatMap { Selector.id($0) } != nil
        self.init(
            try SelectorCompiler().document(selector), Selector.ids(selector, depth: 0),
            isID: isID)
    }

    private init(_ test: DocumentTest, _ ids: [DocumentID]?, isID: Bool) {
        self.test = test
        self.ids = ids
        self.isID = isID
    }

    /// - Parameter fields: the document's fields without its `_id`.
    /// - Returns: whether the document matches. It does not if the selector's regular expressions
    ///   need more than `MatchBudget.maximumSteps` steps for it.
    package func matches(_ fields: EJSONObject, id: DocumentID) -> Bool {
        var search = SearchBudget()
        return matches(fields, id: id, &search)
    }

    /// - Parameter search: of all documents. If it is exceeded, the result means nothing.
    func matches(_ fields: EJSONObject, id: DocumentID, _ search: inout SearchBudget) -> Bool {
        guard !search.isExceeded else { return false }
        var budget = MatchBudget()
        let isMatch = test.matches(fields, id: id, &budget)
        search.spend(budget)
        return isMatch && !budget.isExceeded
    }

    /// The id, if the value is one that stands for `{_id: value}`.
    private static func id(_ value: EJSON) -> DocumentID? {
        switch value {
        case .string, .number, .objectID: DocumentID(value)
        default: nil
        }
    }

    private static func ids(_ selector: EJSONObject, depth: Int) -> [DocumentID]? {
        if let condition = selector["_id"] {
            if let id = id(condition) { return [id] }
            guard case .object(let operators) = condition,
                case .array(let values) = operators["$in"], !values.isEmpty
            else { return nil }
            let ids = values.compactMap { id($0) }
            return ids.count == values.count ? ids : nil
        }
        guard case .array(let selectors) = selector["$and"], depth < maximumDepth else {
            return nil
        }
        for case .object(let selector) in selectors {
            if let ids = ids(selector, depth: depth + 1) { return ids }
        }
        return nil
    }
}
