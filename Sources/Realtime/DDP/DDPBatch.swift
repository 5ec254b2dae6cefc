internal import Documents
internal import Engine
internal import Session
public import Wire

/// Writes to documents that are made together, in `DDPClient.batch`.
public struct DDPBatch: Sendable {
    private(set) var writes: [DocumentWrite] = []

    init() {}

    /// Inserts a document into a collection.
    /// - Parameter document: without `_id`, the client and the server draw the same id.
    public mutating func insert(_ collection: String, _ document: EJSONObject) {
        writes.append(.insert(collection, .object(document)))
    }

    /// Changes a document.
    /// - Parameters:
    ///   - id: a string or an ObjectID.
    ///   - modifier: such as `["$set": ["done": true]]`.
    public mutating func update(_ collection: String, _ id: EJSON, _ modifier: EJSONObject) {
        writes.append(.update(collection, id: id, modifier: .object(modifier)))
    }

    /// Removes a document.
    /// - Parameter id: a string or an ObjectID.
    public mutating func remove(_ collection: String, _ id: EJSON) {
        writes.append(.remove(collection, id: id))
    }
}

extension DDPClient {
    /// Writes to several documents, of any collections, here and at the server. Here the writes are
    /// one notification, and at most one change of each live query. The server gets a call for each
    /// write, in their order, and does or refuses each by itself.
    ///
    ///     try client.batch { batch in
    ///         batch.insert("todos", ["text": "milk", "listId": "groceries"])
    ///         batch.update("lists", "groceries", ["$inc": ["count": 1]])
    ///     }
    ///
    /// In a stub, the writes are a part of it, and nothing is sent.
    /// - Parameters:
    ///   - options: how each of the calls is made.
    ///   - body: collects the writes, which are made when it returns. If it throws, none is.
    /// - Returns: the calls.
    /// - Throws: what `body` throws; `RealtimeError`: `.invalidArgument` for a document, id or
    ///   modifier that cannot be used, with which nothing is written, and for options that cannot
    ///   be used; `.closed`. A write that fails here is reported by its call.
    @discardableResult
    public func batch(
        options: DDPCallOptions = DDPCallOptions(), _ body: (inout DDPBatch) throws -> Void
    ) throws -> DDPWrites {
        var batch = DDPBatch()
        try body(&batch)
        let writes = batch.writes
        return try DDPWrites(options) { (options, handlers) throws(RealtimeError) in
            try engine.write(options: options, handlers: handlers) { _ in writes }
        }
    }
}

/// Writes that were made together: here they are done. From `DDPClient.batch` and `DDPModels.save`.
public struct DDPWrites: Sendable {
    /// A call for each write, in their order. For an insertion, `stubValue` is the document's id.
    public let calls: [DDPCall]

    /// Waits until the server has done all of them, and the documents are as it has them.
    /// - Throws: `DDPError`: the first failure of a call, in the order of the calls. What this call
    ///   has written here is undone, the other calls are not. `CancellationError`, which ends no
    ///   call.
    public func completed() async throws {
        var failure: (any Error)?
        for call in calls {
            do {
                try await call.completed()
            } catch let error as CancellationError {
                throw error
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
    }

    /// - Parameter write: makes the calls, with handlers from its second argument.
    init(
        _ options: DDPCallOptions,
        _ write: (
            Session.DDPCallOptions, () -> DDPCallHandlers
        ) throws(RealtimeError) -> [Result<Session.DDPCall, DDPError>]
    ) throws(RealtimeError) {
        var answers: [DDPCallAnswers] = []
        let results = try write(try options.engine()) {
            let answer = DDPCallAnswers()
            answers.append(answer)
            return answer.makeHandlers()
        }
        calls = zip(results, answers).map { result, answer in
            switch result {
            case .success(let call): DDPCall(call, answer)
            case .failure(let error): DDPCall(failed: error)
            }
        }
    }
}
