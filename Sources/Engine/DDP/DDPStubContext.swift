package import Documents
package import Session
package import Wire

/// Does to the local documents what a method will do to those of the server. It runs on the calling
/// thread before the call returns, and must not wait for other threads.
package typealias DDPStub = (DDPStubContext, [EJSON]) -> DDPStubOutcome

/// Runs the methods that a stub calls.
protocol DDPStubCaller: AnyObject {
    func callInStub(_ request: DDPRequest) -> DDPStubOutcome
}

/// What a stub may do. It is used by the thread that runs the stub, until that returns; later, and
/// on other threads, everything fails.
package final class DDPStubContext {
    private let session: DDPSharedSession
    /// nil once the stub has ended.
    private var caller: (any DDPStubCaller)?

    init(_ session: DDPSharedSession, _ caller: any DDPStubCaller) {
        self.session = session
        self.caller = caller
    }

    func end() { caller = nil }

    /// The stream that Meteor's methods use if they name none.
    package static let defaultStream = "default"

    /// The user who is logged in; nil for nobody.
    package var userID: String? { session.locked { session.session.userID } }

    /// - Throws: if the stub has ended.
    private func shared() throws(DDPError) -> DDPSharedSession {
        guard caller != nil, session.isOwned else {
            throw DDPError(
                .stub, "stub-ended",
                reason: "the context of a stub was used after its end, or on another thread")
        }
        return session
    }

    private func check(_ values: EJSON...) throws(DDPError) {
        for value in values where value.isTooDeep {
            throw DDPError(.stub, 400, reason: "a value is nested too deep")
        }
    }

    /// Inserts a document.
    /// - Parameter document: an object. Without an `_id`, it gets the one that the server's method
    ///   will draw too.
    /// - Returns: its id.
    package func insert(_ collection: String, _ document: EJSON) throws(DDPError) -> EJSON {
        let shared = try shared()
        try check(document)
        return try shared.session.insertInStub(collection, document, drawing: &shared.entropy)
    }

    /// Changes the first document that the selector finds, or all of them.
    /// - Returns: how many there were.
    package func update(
        _ collection: String, _ selector: EJSON, _ modifier: EJSON, isMulti: Bool = false
    ) throws(DDPError) -> Int {
        let shared = try shared()
        try check(selector, modifier)
        return try shared.session.updateInStub(collection, selector, modifier, isMulti: isMulti)
    }

    /// Removes all documents that the selector finds.
    /// - Returns: how many there were.
    package func remove(_ collection: String, _ selector: EJSON) throws(DDPError) -> Int {
        let shared = try shared()
        try check(selector)
        return try shared.session.removeInStub(collection, selector)
    }

    /// The documents that the query finds, as the stub has changed them.
    package func find(_ query: Query, in collection: String) throws(DDPError) -> [Found] {
        let shared = try shared()
        do throws(RealtimeError) {
            return try shared.session.store.find(query, in: collection)
        } catch {
            throw DDPError(failed: error)
        }
    }

    /// Runs the stub of another method, or what a declared collection does. Nothing is sent.
    package func call(_ request: DDPRequest) throws(DDPError) -> EJSON {
        _ = try shared()
        for value in request.params { try check(value) }
        guard let caller else { return .null }
        return try caller.callInStub(request).get()
    }

    /// Draws from a named stream, as the server's method will.
    package func draw<Value>(
        from stream: String, _ body: (inout RandomStream) -> Value
    ) throws(DDPError) -> Value? {
        let shared = try shared()
        return shared.session.draw(from: stream, drawing: &shared.entropy, body)
    }
}
