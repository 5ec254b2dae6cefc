package import Documents
package import Session
package import Wire

// Several writes at once.
extension DDPConnection {
    /// Writes several documents here and at the server: a call for each of them, and one
    /// notification for all. In a stub, they are a part of it.
    /// - Parameters:
    ///   - handlers: makes the handlers of a call.
    ///   - plan: chooses the writes. It has the documents as they are, and must not use the client.
    /// - Returns: the calls, or how those of a stub ended, in the order of the writes.
    package func write(
        options: DDPCallOptions = .init(), handlers: () -> DDPCallHandlers = { .init() },
        _ plan: (borrowing DocumentStore) throws(RealtimeError) -> [DocumentWrite]
    ) throws(RealtimeError) -> [Result<DDPCall, DDPError>] {
        try checkOpen()
        if isInStub {
            return try checked(plan(shared.session.store)).map { write in
                nested(writeInStub(write), handlers())
            }
        }
        return try change { shared throws(RealtimeError) in
            shared.session.beginBatch(now: Loop.now())
            defer { shared.session.endBatch() }
            let writes = try checked(plan(shared.session.store))
            try shared.session.checkMayCall(writes.count)
            return writes.map { write in
                perform(write, options, handlers(), shared)
            }
        }
    }

    private func checked(
        _ writes: [DocumentWrite]
    ) throws(RealtimeError) -> [DocumentWrite] {
        for write in writes { try write.check() }
        return writes
    }

    private func perform(
        _ write: DocumentWrite, _ options: DDPCallOptions, _ handlers: DDPCallHandlers,
        _ shared: DDPSharedSession
    ) -> Result<DDPCall, DDPError> {
        do throws(DDPError) {
            let now = Loop.now()
            let call =
                switch write {
                case .insert(let collection, let document):
                    try shared.session.insert(
                        collection, document, options: options, drawing: &shared.entropy, now: now)
                case .update(let collection, let id, let modifier):
                    try shared.session.update(
                        collection, id: id, modifier, options: options,
                        drawing: &shared.entropy, now: now)
                case .remove(let collection, let id):
                    try shared.session.remove(
                        collection, id: id, options: options, drawing: &shared.entropy, now: now)
                }
            shared.calls[call.id] = handlers
            return .success(call)
        } catch {
            return .failure(error)
        }
    }

    /// All documents as they are now. To search them, keep it no longer than needed: while it
    /// exists, the first change of a collection costs a copy of it.
    package var documents: DocumentStore { read { $0.session.store } }
}

extension DocumentWrite {
    /// - Throws: `.invalidArgument` for what no server accepts: an id that is none, which could be
    ///   a selector of many documents; a document or modifier that is not an object; and values
    ///   that are nested too deep.
    func check() throws(RealtimeError) {
        try request.check()
        switch self {
        case .insert(_, let document):
            guard case .object(let fields) = document else {
                throw RealtimeError(.invalidArgument, "a document must be an object")
            }
            try fields.checkInsertable()
        case .update(_, let id, let modifier):
            try DocumentWrite.check(id)
            guard case .object = modifier else {
                throw RealtimeError(.invalidArgument, "a modifier must be an object")
            }
        case .remove(_, let id): try DocumentWrite.check(id)
        }
    }

    private static func check(_ id: EJSON) throws(RealtimeError) {
        switch id {
        case .string(let text) where !text.isEmpty: return
        case .number, .objectID: return
        default: throw RealtimeError(.invalidArgument, "id is not a string and not an ObjectID")
        }
    }

    var collection: String {
        switch self {
        case .insert(let name, _), .update(let name, _, _), .remove(let name, _): name
        }
    }

    var request: DDPRequest {
        switch self {
        case .insert(let collection, let document):
            DDPRequest("/\(collection)/insert", [document])
        case .update(let collection, let id, let modifier):
            DDPRequest("/\(collection)/update", [id, modifier])
        case .remove(let collection, let id): DDPRequest("/\(collection)/remove", [id])
        }
    }
}
