internal import Documents
internal import Engine
internal import Session
public import Wire

/// What a stub uses (`DDPClient.setStub`). After the stub's end, and on other threads, everything
/// fails with `DDPFailure`. Unchecked because the engine checks the thread.
public final class DDPStub: @unchecked Sendable {
    private let context: DDPStubContext

    init(_ context: DDPStubContext) { self.context = context }

    /// The user who is logged in; nil for nobody.
    public var userID: String? { context.userID }

    /// Inserts a document into the local documents.
    /// - Parameter document: without `_id`, it gets the id that the server's method will draw too.
    /// - Returns: its id.
    @discardableResult
    public func insert(_ collection: String, _ document: EJSONObject) throws(DDPFailure) -> EJSON {
        try failing { (context) throws(DDPError) in
            try context.insert(collection, .object(document))
        }
    }

    /// Changes local documents.
    /// - Parameter multi: whether all documents are changed that the selector finds, or the first.
    /// - Returns: how many there were.
    @discardableResult
    public func update(
        _ collection: String, _ selector: EJSON, _ modifier: EJSONObject, multi: Bool = false
    ) throws(DDPFailure) -> Int {
        try failing { (context) throws(DDPError) in
            try context.update(collection, selector, .object(modifier), isMulti: multi)
        }
    }

    /// Removes local documents.
    /// - Returns: how many there were.
    @discardableResult
    public func remove(_ collection: String, _ selector: EJSON) throws(DDPFailure) -> Int {
        try failing { (context) throws(DDPError) in try context.remove(collection, selector) }
    }

    /// The documents that a query finds, as the stub has changed them; see `DDPCollection.find`.
    public func find(
        _ collection: String, _ selector: EJSON = [:], options: EJSONObject = [:]
    ) throws -> [DDPDocument] {
        let query = try Query(selector: selector, options: .object(options))
        let found = try failing { (context) throws(DDPError) in
            try context.find(query, in: collection)
        }
        return found.map { DDPDocument($0) }
    }

    /// Runs the stub of another method. Nothing is sent.
    @discardableResult
    public func call(_ method: String, _ params: [EJSON] = []) throws(DDPFailure) -> EJSON {
        try failing { (context) throws(DDPError) in try context.call(DDPRequest(method, params)) }
    }

    /// Draws an id that the server's method will draw too.
    /// - Parameter stream: inserts into a collection draw from `/collection/NAME`.
    public func drawID(from stream: String) throws(DDPFailure) -> String {
        try failing { (context) throws(DDPError) in
            try context.draw(from: stream) { $0.id() }
        } ?? ""
    }

    /// Draws a number, from 0 to below 1, that the server's method will draw too.
    public func drawFraction(from stream: String) throws(DDPFailure) -> Double {
        try failing { (context) throws(DDPError) in
            try context.draw(from: stream) { $0.fraction() }
        } ?? 0
    }

    private func failing<Value>(
        _ body: (DDPStubContext) throws(DDPError) -> Value
    ) throws(DDPFailure) -> Value {
        do throws(DDPError) {
            return try body(context)
        } catch {
            throw DDPFailure(error)
        }
    }
}
