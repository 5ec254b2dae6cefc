internal import Documents
internal import Engine
internal import Session
public import Wire

/// A document of a collection.
public struct DDPDocument: Sendable, Equatable {
    /// A string or an ObjectID.
    public let id: EJSON
    /// The other fields.
    public let fields: EJSONObject

    /// The value of a field; nil if the document has no such field.
    public subscript(name: String) -> EJSON? { name == "_id" ? id : fields[name] }

    init(_ found: Found) {
        id = found.id.value ?? .null
        fields = found.fields
    }

    init(id: EJSON, fields: EJSONObject) {
        self.id = id
        self.fields = fields
    }
}

/// How a method is called.
public struct DDPCallOptions: Sendable {
    /// Earlier calls are finished before it is sent, and it is finished before later ones are.
    public var wait = false
    /// If the connection is lost before its result, the call fails: it is not sent again, because
    /// it could run twice on the server.
    public var noRetry = false
    /// If its stub throws, the call fails, and nothing is sent.
    public var throwStubErrors = false
    /// The time limit for the whole call; zero without limit.
    public var timeout = Duration.zero

    public init() {}

    func engine() throws(RealtimeError) -> Session.DDPCallOptions {
        var options = Session.DDPCallOptions()
        options.isWait = wait
        options.noRetry = noRetry
        options.throwsStubErrors = throwStubErrors
        options.timeout = try OptionCheck.delay(timeout, "timeout")
        return options
    }
}

/// A change of a document, or of a place in the result of a live query.
public struct DDPChange: Sendable, Equatable {
    public enum Kind: Sendable, Equatable {
        case added
        /// Some fields have changed.
        case changed
        case removed
        /// The document has another place in the result of a live query.
        case moved
    }

    public let kind: Kind
    public let collection: String
    public let id: EJSON
    /// The fields that are new or have another value.
    public let fields: EJSONObject
    /// The names of the fields that are gone.
    public let cleared: [String]
    /// For a live query: the id of the document that follows an added or moved one; nil at the end.
    public let before: EJSON?
    /// Whether it belongs to the result that a live query began with.
    public let isInitial: Bool

    init(_ change: ListChange, in collection: String, isInitial: Bool) {
        self.collection = collection
        self.isInitial = isInitial
        switch change {
        case .added(let id, let fields, let before):
            (kind, self.id, self.fields) = (.added, id.value ?? .null, fields)
            (cleared, self.before) = ([], before?.value)
        case .changed(let id, let fields, let cleared):
            (kind, self.id, self.fields) = (.changed, id.value ?? .null, fields)
            (self.cleared, before) = (cleared, nil)
        case .moved(let id, let before):
            (kind, self.id, fields) = (.moved, id.value ?? .null, [:])
            (cleared, self.before) = ([], before?.value)
        case .removed(let id):
            (kind, self.id, fields) = (.removed, id.value ?? .null, [:])
            (cleared, before) = ([], nil)
        }
    }

    init(_ change: DocumentChange) {
        collection = change.key.collection
        id = change.key.id.value ?? .null
        (isInitial, before) = (false, nil)
        guard change.after != nil else {
            (kind, fields, cleared) = (.removed, [:], [])
            return
        }
        kind = change.before == nil ? .added : .changed
        let details = change.details
        (fields, cleared) = (details.fields, details.cleared)
    }
}
