package import Documents
package import Wire

/// Draws what cannot be guessed.
package protocol DDPRandomSource: SeedSource {
    /// The id of a new subscription: 17 characters.
    mutating func subscriptionID() -> String
}

/// The invocation of a stub, or of one that it calls.
struct DDPStubScope: Sendable {
    var random: RandomScope
}

/// The call of a method that a declared collection has.
enum DDPWrite: Sendable {
    case insert(String, EJSON)
    case update(String, selector: EJSON, modifier: EJSON, options: EJSON)
    case remove(String, selector: EJSON)

    /// - Returns: nil if the method is not one of a collection that was declared.
    init?(_ request: DDPRequest, isDeclared: (String) -> Bool) {
        var name = Substring(request.name).utf8[...]
        guard name.popFirst() == UInt8(ascii: "/"),
            let slash = name.lastIndex(of: UInt8(ascii: "/"))
        else { return nil }
        let collection = String(Substring(name[..<slash]))
        guard isDeclared(collection) else { return nil }
        func parameter(_ index: Int) -> EJSON {
            index < request.params.count ? request.params[index] : .null
        }
        var action = name[name.index(after: slash)...]
        // From Meteor 3.0 on there are these too.
        if action.suffix(5).elementsEqual("Async".utf8) { action = action.dropLast(5) }
        if action.elementsEqual("insert".utf8) {
            self = .insert(collection, parameter(0))
        } else if action.elementsEqual("update".utf8) {
            self = .update(
                collection, selector: parameter(0), modifier: parameter(1), options: parameter(2))
        } else if action.elementsEqual("remove".utf8) {
            self = .remove(collection, selector: parameter(0))
        } else {
            return nil
        }
    }
}

extension DDPError {
    /// An operation in a stub has failed.
    package init(failed error: RealtimeError) {
        self.init(.stub, "stub-failed", reason: error.message)
    }
}

// Stubs: what the application's code may do to the documents before the server does it.
//
// The driver calls `beginStub`, runs the stub, whose operations are those below, and passes its
// outcome to `call`. A call in the stub runs the callee's stub between `enterStub` and `leaveStub`,
// and sends nothing.
extension DDPSession {
    /// A stub is running.
    package var isInStub: Bool { !scopes.isEmpty }

    /// How many stubs run inside each other.
    package var stubDepth: Int { scopes.count }

    /// Begins the stub of a call.
    package mutating func beginStub(now: Instant) {
        applyReceived(now)
        store.beginBatch()
        store.beginOriginals()
        scopes = [DDPStubScope(random: RandomScope())]
    }

    /// Begins the stub of a method that the running stub calls.
    package mutating func enterStub(_ name: String) {
        guard let outer = scopes.last else { return }
        scopes.append(DDPStubScope(random: outer.random.nested(name)))
    }

    /// Ends the stub that `enterStub` began.
    package mutating func leaveStub() {
        guard scopes.count > 1, let inner = scopes.popLast() else { return }
        scopes[scopes.count - 1].random.take(inner.random)
    }

    /// Runs a method that the running stub calls, and that has no stub of the application.
    /// - Returns: null if it has no stub at all.
    package mutating func callInStub(
        _ request: DDPRequest, drawing source: inout some DDPRandomSource
    ) -> DDPStubOutcome {
        guard let write = write(request) else { return .success(.null) }
        enterStub(request.name)
        defer { leaveStub() }
        return performWrite(write, drawing: &source)
    }

    /// Draws from a named stream of the running stub; nil outside of stubs.
    package mutating func draw<Value>(
        from stream: String, drawing source: inout some DDPRandomSource,
        _ body: (inout RandomStream) -> Value
    ) -> Value? {
        guard !scopes.isEmpty else { return nil }
        return scopes[scopes.count - 1].random.withStream(stream, drawing: &source, body)
    }

    /// The write that a call is, if its collection is declared.
    mutating func write(_ request: DDPRequest) -> DDPWrite? {
        DDPWrite(request) { store.isDeclared($0) }
    }

    mutating func takeStub() -> (originals: [OriginalDocument], seed: String?) {
        let seed = scopes.first?.random.seed
        scopes = []
        return (store.takeOriginals(), seed)
    }

    /// Ends the batch of a stub.
    mutating func publishBatch() {
        if let notification = store.endBatch() { report(.changed(notification)) }
    }

    mutating func performWrite(
        _ write: DDPWrite, drawing source: inout some DDPRandomSource
    ) -> DDPStubOutcome {
        do throws(DDPError) {
            switch write {
            case .insert(let collection, let document):
                return .success(try insertInStub(collection, document, drawing: &source))
            case .update(let collection, let selector, let modifier, let options):
                var isMulti = false
                if case .object(let options) = options, case .bool(true)? = options["multi"] {
                    isMulti = true
                }
                let count = try updateInStub(collection, selector, modifier, isMulti: isMulti)
                return .success(.number(Double(count)))
            case .remove(let collection, let selector):
                return .success(.number(Double(try removeInStub(collection, selector))))
            }
        } catch {
            return .failure(error)
        }
    }

    // MARK: Operations

    /// Inserts a document in the running stub.
    /// - Returns: its id, which is drawn if the document has none.
    /// - Throws: if the id is there already, or the document cannot be inserted, see
    ///   `EJSONObject.checkInsertable`.
    package mutating func insertInStub(
        _ collection: String, _ document: EJSON, drawing source: inout some DDPRandomSource
    ) throws(DDPError) -> EJSON {
        var fields = try DDPSession.insertable(document)
        let id = fields["_id"] ?? drawID(collection, drawing: &source)
        fields["_id"] = nil
        guard let key = DocumentID(id) else {
            throw DDPError(.stub, 400, reason: "a document's _id must be a text or an ObjectID")
        }
        guard store.insert(DocumentKey(collection: collection, id: key), fields) else {
            throw DDPError(.stub, 409, reason: "a document with this _id is there already")
        }
        return id
    }

    /// The fields of a document that can be inserted.
    private static func insertable(_ document: EJSON) throws(DDPError) -> EJSONObject {
        guard case .object(let fields) = document else {
            throw DDPError(.stub, 400, reason: "a document must be an object")
        }
        do throws(RealtimeError) {
            try fields.checkInsertable()
        } catch {
            throw DDPError(.stub, 400, reason: error.message)
        }
        return fields
    }

    private mutating func drawID(
        _ collection: String, drawing source: inout some DDPRandomSource
    ) -> EJSON {
        let kind = store.newIDs(of: collection)
        let name = "/collection/" + collection
        return scopes[scopes.count - 1].random.withStream(name, drawing: &source) { stream in
            switch kind {
            case .strings: .string(stream.id())
            case .objectIDs: ObjectID(hex: stream.hexString(24)).map { .objectID($0) } ?? .null
            }
        }
    }

    /// Changes documents in the running stub: all that the selector finds, or the first.
    /// - Returns: how many there were.
    package mutating func updateInStub(
        _ collection: String, _ selector: EJSON, _ modifier: EJSON, isMulti: Bool = false
    ) throws(DDPError) -> Int {
        do throws(RealtimeError) {
            let modifier = try Modifier(modifier, now: wallClock)
            var count = 0
            for id in try found(collection, selector, limit: isMulti ? nil : 1) {
                count += try store.update(DocumentKey(collection: collection, id: id), modifier)
            }
            return count
        } catch {
            throw DDPError(failed: error)
        }
    }

    /// Removes the documents that the selector finds, in the running stub.
    /// - Returns: how many there were.
    package mutating func removeInStub(
        _ collection: String, _ selector: EJSON
    ) throws(DDPError) -> Int {
        do throws(RealtimeError) {
            var count = 0
            for id in try found(collection, selector, limit: nil) {
                count += store.remove(DocumentKey(collection: collection, id: id))
            }
            return count
        } catch {
            throw DDPError(failed: error)
        }
    }

    private mutating func found(
        _ collection: String, _ selector: EJSON, limit: Int?
    ) throws(RealtimeError) -> [DocumentID] {
        if let id = DocumentID(selector), selector != .null { return [id] }
        let query = try Query(selector: selector)
        let ids = try store.find(query, in: collection).map { $0.id }
        guard let limit else { return ids }
        // Minimongo looks at documents that the selector names in the selector's order.
        let named = query.selector.ids?.filter(Set(ids).contains)
        return Array((named ?? ids).prefix(limit))
    }

    // MARK: Writing from outside of stubs

    /// Begins a batch: what is written until `endBatch` is one notification. Not inside a stub.
    package mutating func beginBatch(now: Instant) {
        applyReceived(now)
        store.beginBatch()
    }

    /// A program that writes sees everything that was received. What was received before the client
    /// began to wait must not come after what is written now: a removed document would return when
    /// the server has answered the call.
    private mutating func applyReceived(_ now: Instant) {
        settle(now)
        if !quiescence.isWaiting || store.isBuffering { flushAtOnce(now) }
    }

    package mutating func endBatch() { publishBatch() }

    /// Declares a collection, with the stubs of its three methods.
    package mutating func declare(_ collection: String, ids: NewDocumentIDs = .strings) {
        store.declare(collection, ids: ids)
    }

    /// A collection that is written needs these stubs.
    package mutating func declareForWriting(_ collection: String) {
        if !store.isDeclared(collection) { store.declare(collection) }
    }

    /// Inserts a document here and at the server. Not inside a stub.
    /// - Parameter document: an object. If it has no `_id`, both draw the same one.
    /// - Returns: the call; its value is the document's id.
    /// - Throws: if the document cannot be inserted, see `EJSONObject.checkInsertable`.
    package mutating func insert(
        _ collection: String, _ document: EJSON, options: DDPCallOptions = .init(),
        drawing source: inout some DDPRandomSource, now: Instant
    ) throws(DDPError) -> DDPCall {
        let fields = try DDPSession.insertable(document)
        declareForWriting(collection)
        let made = try call(
            DDPRequest(configuration.writeMethod("insert", collection), [document], options),
            drawing: &source, now: now)
        guard made.value == .null else { return made }
        // The stub failed, because the id is there already.
        return DDPCall(id: made.id, value: fields["_id"] ?? .null)
    }

    /// Changes a document here and at the server. Not inside a stub.
    /// - Parameter id: a string or an ObjectID.
    /// - Returns: the call; its value is the number of documents.
    package mutating func update(
        _ collection: String, id: EJSON, _ modifier: EJSON, options: DDPCallOptions = .init(),
        drawing source: inout some DDPRandomSource, now: Instant
    ) throws(DDPError) -> DDPCall {
        declareForWriting(collection)
        return try call(
            DDPRequest(
                configuration.writeMethod("update", collection),
                [DDPSession.selector(id), modifier], options),
            drawing: &source, now: now
        ).countingNone
    }

    /// Removes a document here and at the server. Not inside a stub.
    package mutating func remove(
        _ collection: String, id: EJSON, options: DDPCallOptions = .init(),
        drawing source: inout some DDPRandomSource, now: Instant
    ) throws(DDPError) -> DDPCall {
        declareForWriting(collection)
        return try call(
            DDPRequest(
                configuration.writeMethod("remove", collection), [DDPSession.selector(id)],
                options),
            drawing: &source, now: now
        ).countingNone
    }

    private static func selector(_ id: EJSON) -> EJSON {
        var selector = EJSONObject()
        selector["_id"] = id
        return .object(selector)
    }
}

extension DDPCall {
    /// A stub that failed has changed nothing.
    fileprivate var countingNone: DDPCall {
        value == .null ? DDPCall(id: id, value: .number(0)) : self
    }
}
