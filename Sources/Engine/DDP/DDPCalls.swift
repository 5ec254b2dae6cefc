import CShims
import Documents
package import Session
package import Wire

// Calls of methods, and their stubs.
extension DDPConnection: DDPStubCaller {
    /// Defines what calls of a method do to the local documents until the server has done it; nil
    /// for nothing. Calls that were made before are not affected.
    package func setStub(_ method: String, _ stub: DDPStub?) throws(RealtimeError) {
        try checkOpen()
        let stub = DDPSendable(stub)
        let old = shared.locked {
            DDPSendable(exchange(&stubs[ByteText(method)], with: stub.value))
        }
        withExtendedLifetime(old) {}
    }

    /// Calls a method. Its stub runs before this returns. Inside a stub, only the stub runs.
    /// - Returns: the call with the stub's value, or what the stub has thrown if the options say
    ///   so. Then nothing is sent, and no handler is called.
    package func call(
        _ request: DDPRequest, _ handlers: DDPCallHandlers = .init()
    ) throws(RealtimeError) -> Result<DDPCall, DDPError> {
        try checkOpen()
        try request.check()
        guard !isInStub else { return nested(callInStub(request), handlers) }
        return try made(handlers) { shared throws(DDPError) in
            guard let stub = stubs[ByteText(request.name)] else {
                return try shared.session.call(
                    request, drawing: &shared.entropy, now: Loop.now())
            }
            shared.session.beginStub(now: Loop.now())
            let outcome = run(stub, request)
            return try shared.session.call(request, outcome, now: Loop.now())
        }
    }

    /// Inserts a document here and at the server.
    /// - Parameter document: an object. If it has no `_id`, both draw the same one.
    /// - Returns: the call; its value is the document's id.
    package func insert(
        _ collection: String, _ document: EJSON, options: DDPCallOptions = .init(),
        _ handlers: DDPCallHandlers = .init()
    ) throws(RealtimeError) -> Result<DDPCall, DDPError> {
        try write(.insert(collection, document), handlers) { shared throws(DDPError) in
            try shared.session.insert(
                collection, document, options: options, drawing: &shared.entropy, now: Loop.now())
        }
    }

    /// Changes a document here and at the server.
    /// - Parameter id: a string or an ObjectID.
    /// - Returns: the call; its value is the number of documents.
    package func update(
        _ collection: String, id: EJSON, _ modifier: EJSON, options: DDPCallOptions = .init(),
        _ handlers: DDPCallHandlers = .init()
    ) throws(RealtimeError) -> Result<DDPCall, DDPError> {
        try write(.update(collection, id: id, modifier: modifier), handlers) {
            shared throws(DDPError) in
            try shared.session.update(
                collection, id: id, modifier, options: options, drawing: &shared.entropy,
                now: Loop.now())
        }
    }

    /// Removes a document here and at the server.
    package func remove(
        _ collection: String, id: EJSON, options: DDPCallOptions = .init(),
        _ handlers: DDPCallHandlers = .init()
    ) throws(RealtimeError) -> Result<DDPCall, DDPError> {
        try write(.remove(collection, id: id), handlers) { shared throws(DDPError) in
            try shared.session.remove(
                collection, id: id, options: options, drawing: &shared.entropy, now: Loop.now())
        }
    }

    private func write(
        _ write: DocumentWrite, _ handlers: DDPCallHandlers,
        _ body: (DDPSharedSession) throws(DDPError) -> DDPCall
    ) throws(RealtimeError) -> Result<DDPCall, DDPError> {
        try checkOpen()
        try write.check()
        if isInStub { return nested(writeInStub(write), handlers) }
        return try made(handlers, body)
    }

    /// Writes as a part of the running stub.
    func writeInStub(_ write: DocumentWrite) -> DDPStubOutcome {
        shared.session.declareForWriting(write.collection)
        return callInStub(write.request)
    }

    // MARK: Accounts

    /// Calls a method that logs a user in, such as those of `DDPRequest`: its result has the user's
    /// `id` and a `token`. Not inside a stub.
    package func logIn(
        _ request: DDPRequest, _ handlers: DDPCallHandlers = .init()
    ) throws(RealtimeError) -> DDPCall {
        try request.check()
        return try account(handlers) { $0.session.logIn(request, now: Loop.now()) }
    }

    /// Logs the user out, here once the server has. Not inside a stub.
    package func logOut(_ handlers: DDPCallHandlers = .init()) throws(RealtimeError) -> DDPCall {
        try account(handlers) { $0.session.logOut(now: Loop.now()) }
    }

    /// Logs all other clients of the user out. Not inside a stub.
    package func logOutOthers(
        _ handlers: DDPCallHandlers = .init()
    ) throws(RealtimeError) -> DDPCall {
        try account(handlers) { $0.session.logOutOthers(now: Loop.now()) }
    }

    /// Sets the user that stubs see, without a login.
    package func setUserID(_ id: String?) throws(RealtimeError) {
        try checkOpen()
        change { $0.session.setUserID(id, now: Loop.now()) }
    }

    private func account(
        _ handlers: DDPCallHandlers, _ body: (DDPSharedSession) -> DDPCall
    ) throws(RealtimeError) -> DDPCall {
        try checkOpen()
        guard !isInStub else {
            throw RealtimeError(.reentrant, "a stub cannot log a user in or out")
        }
        return try change { (shared) throws(RealtimeError) in
            try shared.session.checkMayCall()
            let call = body(shared)
            shared.calls[call.id] = handlers
            return call
        }
    }

    // MARK: Stubs

    var isInStub: Bool { shared.isOwned && shared.session.isInStub }

    /// Makes a call, and keeps its handlers until it is completed.
    private func made(
        _ handlers: DDPCallHandlers, _ body: (DDPSharedSession) throws(DDPError) -> DDPCall
    ) throws(RealtimeError) -> Result<DDPCall, DDPError> {
        try change { (shared) throws(RealtimeError) in
            try shared.session.checkMayCall()
            do throws(DDPError) {
                let call = try body(shared)
                shared.calls[call.id] = handlers
                return .success(call)
            } catch {
                return .failure(error)
            }
        }
    }

    /// A call that a stub has made is completed by its own stub.
    func nested(
        _ outcome: DDPStubOutcome, _ handlers: DDPCallHandlers
    ) -> Result<DDPCall, DDPError> {
        loop.enqueue { [self] in
            guard !isClosed else { return }
            handlers.result?(outcome)
            handlers.completed?(outcome)
        }
        return outcome.map { DDPCall(id: 0, value: $0) }
    }

    private func run(_ stub: DDPStub, _ request: DDPRequest) -> DDPStubOutcome {
        let context = DDPStubContext(shared, self)
        shim_locked_function_begin()
        defer {
            shim_locked_function_end()
            context.end()
        }
        return checked(stub(context, request.params))
    }

    /// What the stub returns, unless it is too deep.
    private func checked(_ outcome: DDPStubOutcome) -> DDPStubOutcome {
        let value: EJSON? =
            switch outcome {
            case .success(let value): value
            case .failure(let error): error.details
            }
        guard value?.isTooDeep == true else { return outcome }
        return .failure(DDPError(.stub, 400, reason: "what the stub returned is nested too deep"))
    }

    /// Runs what a stub calls. The lock is held.
    func callInStub(_ request: DDPRequest) -> DDPStubOutcome {
        guard let stub = stubs[ByteText(request.name)] else {
            return shared.session.callInStub(request, drawing: &shared.entropy)
        }
        guard shared.session.stubDepth < DDPConfiguration.deepestStub else {
            let limit = DDPConfiguration.deepestStub
            return .failure(
                DDPError(
                    .stub, "too-deep", reason: "more than \(limit) stubs run inside each other"))
        }
        shared.session.enterStub(request.name)
        defer { shared.session.leaveStub() }
        return run(stub, request)
    }
}

extension DDPRequest {
    /// - Throws: `.invalidArgument` for parameters that are nested too deep.
    func check() throws(RealtimeError) {
        for value in params { try value.checkDepth("a parameter") }
    }
}
