internal import Documents
internal import Engine
internal import Session
public import Wire

/// What a stub uses (`DDPClient.setStub`). After the stub's end, and on other threads, everything
/// fails with `DDPError`. Unchecked because the engine checks the thread.
public final class DDPStub: @unchecked Sendable {
    private let context: DDPStubContext

    init(_ context: DDPStubContext) { self.context = context }

    /// Always true, as in Meteor's stubs: for code that client and server share.
    public var isSimulation: Bool { true }

    /// The user who is logged in; nil for nobody.
    public var userID: String? { context.userID }

    /// Inserts a document into the local documents.
    /// - Parameter document: without `_id`, it gets the id that the server's method will draw too.
    /// - Returns: its id.
    @discardableResult
    public func insert(_ collection: String, _ document: EJSONObject) throws(DDPError) -> EJSON {
        try context.insert(collection, .object(document))
    }

    /// Changes local documents.
    /// - Parameter multi: whether all documents are changed that the selector finds, or the first.
    /// - Returns: how many there were.
    @discardableResult
    public func update(
        _ collection: String, _ selector: EJSON, _ modifier: EJSONObject, multi: Bool = false
    ) throws(DDPError) -> Int {
        try context.update(collection, selector, .object(modifier), isMulti: multi)
    }

    /// Removes local documents.
    /// - Returns: how many there were.
    @discardableResult
    public func remove(_ collection: String, _ selector: EJSON) throws(DDPError) -> Int {
        try context.remove(collection, selector)
    }

    /// The documents that a query finds, as the stub has changed them; see `DDPCollection.find`.
    public func find(
        _ collection: String, _ selector: EJSON = [:], options: EJSONObject = [:]
    ) throws -> [DDPDocument] {
        let query = try Query(selector: selector, options: .object(options))
        return try context.find(query, in: collection).map { DDPDocument($0) }
    }

    /// Runs the stub of another method. Nothing is sent.
    @discardableResult
    public func call(_ method: String, _ params: [EJSON] = []) throws(DDPError) -> EJSON {
        try context.call(DDPRequest(method, params))
    }

    /// Random values that the server's method will draw too, in the same order.
    /// - Parameter name: the name of the stream there, in `DDP.randomStream(name)`. Inserts into a
    ///   collection draw from `/collection/NAME`.
    public func randomStream(_ name: String = "default") -> DDPRandomStream {
        DDPRandomStream(context, name)
    }
}

/// A stream of random values (`DDPStub.randomStream`). Not for secrets: the values follow
/// from the call's seed, which the server knows.
///
/// Unchecked because the engine checks the thread.
public struct DDPRandomStream: @unchecked Sendable {
    public let name: String
    private let context: DDPStubContext

    fileprivate init(_ context: DDPStubContext, _ name: String) {
        self.context = context
        self.name = name
    }

    /// A number, from 0 to below 1.
    public func fraction() throws(DDPError) -> Double { try draw(or: 0) { $0.fraction() } }

    /// An id as Meteor gives to documents: letters and digits that are not easily confused.
    public func id(_ count: Int = 17) throws(DDPError) -> String {
        try draw(or: "") { $0.id(count) }
    }

    /// Hexadecimal digits; 24 make an ObjectID.
    public func hexString(_ count: Int) throws(DDPError) -> String {
        try draw(or: "") { $0.hexString(count) }
    }

    /// A text of letters, digits, `-` and `_`.
    public func secret(_ count: Int = 43) throws(DDPError) -> String {
        try draw(or: "") { $0.secret(count) }
    }

    /// One of the elements; nil if there are none.
    public func choice<Element>(_ elements: [Element]) throws(DDPError) -> Element? {
        guard !elements.isEmpty else { return nil }
        return elements[try draw(or: 0) { $0.index(below: elements.count) }]
    }

    private func draw<Value>(
        or none: Value, _ body: (inout RandomStream) -> Value
    ) throws(DDPError) -> Value {
        try context.draw(from: name, body) ?? none
    }
}
