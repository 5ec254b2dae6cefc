import Documents
import Wire

/// A value from its EJSON text.
func value(_ json: String) throws -> EJSON { try EJSON(parsing: json) }

/// Documents from the EJSON text of a list of objects with `_id`.
func found(_ json: String) throws -> [Found] {
    guard case .array(let elements) = try value(json) else {
        throw RealtimeError(.invalidArgument, "not a list: \(json)")
    }
    return elements.compactMap { element in
        guard case .object(var fields) = element, let id = fields["_id"].flatMap(DocumentID.init)
        else { return nil }
        fields["_id"] = nil
        return Found(id: id, fields: fields)
    }
}

/// A field `v` of each kind. The ids are single letters.
let kinds = """
    [{"_id":"a","v":1},{"_id":"b","v":"x"},{"_id":"c","v":null},{"_id":"d"},{"_id":"e","v":[3,7]},
    {"_id":"f","v":true},{"_id":"g","v":{"$date":5}},{"_id":"h","v":{"k":1}},{"_id":"i","v":[]},
    {"_id":"j","v":2.5},{"_id":"k","v":{"$binary":"AQ=="}},{"_id":"m","v":0},{"_id":"n","v":"X"},
    {"_id":"o","v":false},{"_id":"p","v":[{"k":1},{"k":2}]}]
    """

/// The ids of the documents of `kinds` that a query finds, in one word.
func find(_ selector: String, _ options: String = "{}", in documents: String = kinds) throws
    -> String
{
    let query = try Query(selector: value(selector), options: value(options))
    let all = try found(documents).map { ($0.id, $0.fields) }
    return try query.results(of: all).map { $0.id.wire }.joined()
}

/// Whether the error is one of the caller's argument.
func isInvalid(_ body: () throws -> Void) -> Bool {
    do {
        try body()
        return false
    } catch {
        return (error as? RealtimeError)?.code == .invalidArgument
    }
}
