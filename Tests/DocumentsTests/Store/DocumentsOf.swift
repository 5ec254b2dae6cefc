@testable import Documents
import Wire

/// A document's fields from their JSON text.
func document(_ json: String) throws -> EJSONObject {
    guard case .object(let object) = try EJSON(parsing: json) else {
        throw RealtimeError(.invalidArgument, "not an object: \(json)")
    }
    return object
}

func query(_ selector: String = "{}", _ options: String = "{}") throws -> Query {
    try Query(selector: EJSON(parsing: selector), options: EJSON(parsing: options))
}

extension DocumentID {
    init(_ text: String) {
        guard let id = DocumentID(EJSON.string(text)) else { preconditionFailure("no id: \(text)") }
        self = id
    }
}

extension DocumentKey {
    init(_ collection: String, _ id: String) {
        self.init(collection: collection, id: DocumentID(id))
    }
}

extension DocumentStore {
    /// Applies updates in one flush.
    mutating func receive(_ updates: (DocumentKey, DocumentUpdate)...) -> Notification? {
        for (key, update) in updates { _ = buffer(update, for: key) }
        return flush()
    }

    /// Flushes in parts of so many steps.
    mutating func flush(emptying: Bool = false, inPartsOf steps: Int) -> Notification? {
        beginFlush(emptying: emptying)
        while isFlushing {
            var budget = StepBudget(steps)
            if let notification = continueFlush(&budget) { return notification }
        }
        return nil
    }

    /// The ids of a collection in natural order.
    func ids(_ collection: String) -> [String] { documents(in: collection).map { $0.id.wire } }
}

extension Notification {
    /// The changes in short: `+a` new, `-a` gone, `*a` changed.
    var marks: [String] {
        changes.map { change in
            let id = change.key.id.wire
            if change.before == nil { return "+" + id }
            return (change.after == nil ? "-" : "*") + id
        }
    }

    /// The steps of its first live query.
    var steps: [String] { live.first.map { $0.changes.map { $0.mark } } ?? [] }
}

extension ListChange {
    /// The step in short: `+a b` inserted before b, `>a b` moved, `*a` changed, `-a` gone; the
    /// place is left out at the end of the list.
    var mark: String {
        switch self {
        case .added(let id, _, let before): "+" + id.wire + (before.map { " " + $0.wire } ?? "")
        case .moved(let id, let before): ">" + id.wire + (before.map { " " + $0.wire } ?? "")
        case .changed(let id, let fields, let cleared):
            "*" + id.wire + " " + EJSON.object(fields).text + cleared.map { " -" + $0 }.joined()
        case .removed(let id): "-" + id.wire
        }
    }
}
