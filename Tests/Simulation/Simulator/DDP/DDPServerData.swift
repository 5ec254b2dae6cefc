import Wire

/// Names a document at the server. The id has its form on the wire.
struct DDPServerKey: Hashable, Comparable {
    let collection: String
    let id: String

    static func < (first: DDPServerKey, second: DDPServerKey) -> Bool {
        (first.collection, first.id) < (second.collection, second.id)
    }
}

/// The fields of a document at the server, each a JSON text.
typealias DDPServerFields = [String: String]

/// What a method of the server fails with.
struct DDPServerError: Error {
    let code: String
    /// A JSON text.
    var details = "null"

    var json: String {
        let isNumber = code.allSatisfy { $0.isNumber }
        let code = isNumber ? code : "\"\(code)\""
        return #"{"error":\#(code),"reason":"no","details":\#(details),"isClientSafe":true}"#
    }
}

/// One run of a method, for a call of the client.
struct DDPServerRun {
    /// The result, or the error's code, as a JSON text.
    var outcome = "null"
    var hasFailed = false
    /// The documents that it wrote.
    var keys: Set<DDPServerKey> = []
}

/// A subscription at the server.
struct DDPServerSubscription {
    let name: String
    /// The parameters: a collection, and a value.
    let collection: String
    let value: String
    /// Its documents are published.
    var isActive = false
    var isReady = false

    /// The fields that it publishes of a document; nil if it does not publish the document.
    func publishes(
        _ key: DDPServerKey, _ fields: DDPServerFields, user: String?
    ) -> DDPServerFields? {
        guard key.collection == collection else { return nil }
        switch name {
        case "some": return fields["kind"] == value ? fields : nil
        case "names": return fields.filter { $0.key == "name" }
        case "mine":
            guard let user else { return nil }
            return fields["owner"] == "\"\(user)\"" ? fields : nil
        default: return fields
        }
    }
}

extension JSONValue {
    /// As a text.
    var json: String { (try? text) ?? "null" }
}
