internal import Documents
internal import Engine
import Synchronization
public import Wire

/// The results of a query: the present one, and the one after each change, from
/// `DDPCollection.results`.
///
/// Any number of tasks iterate, each with an iteration of its own. One that is slow leaves out the
/// results that it was too slow for. The query ends with the last reference to the sequence and its
/// iterators, and the iterations when the client is closed. They throw if the query has ended by
/// itself, see `DDPClient.onQueryEnd`.
public struct DDPResults: AsyncSequence, Sendable {
    public typealias Element = [DDPDocument]
    public typealias Failure = RealtimeError

    fileprivate let query: LatestResultQuery

    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let query: LatestResultQuery
        private var version = 0

        fileprivate init(_ query: LatestResultQuery) { self.query = query }

        /// Waits for a result that it has not returned yet.
        /// - Returns: nil when the client is closed, or the task is cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(RealtimeError) -> [DDPDocument]? {
            try await query.result.next(after: &version)?.map { DDPDocument($0) }
        }

        public mutating func next() async throws(RealtimeError) -> [DDPDocument]? {
            try await next(isolation: #isolation)
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(query) }
}

extension DDPCollection {
    /// The result of a query, and its result after each change, as soon as the iteration asks for
    /// it: results that it was too slow for are left out.
    ///
    ///     for try await open in try client.collection("tasks").results(["done": false]) { … }
    ///
    /// - Throws: `.invalidArgument` for a query with a fault; `.closed`.
    public func results(
        _ selector: EJSON = [:], options: EJSONObject = [:]
    ) throws(RealtimeError) -> DDPResults {
        let query = try Query(selector: selector, options: .object(options))
        return DDPResults(query: try LatestResultQuery(client, query, in: name))
    }
}

/// A live query that ends when it is released.
private final class LatestResultQuery: Sendable {
    let result = LatestResult()
    private let client: DDPClient
    private let id: LiveQueryID

    init(_ client: DDPClient, _ query: Query, in collection: String) throws(RealtimeError) {
        self.client = client
        let end = DDPStreamEnd { [result] in result.finish() }
        id = try client.engine.observeFromStart(query, in: collection) { [result] change, _, _ in
            withExtendedLifetime(end) { result.report(change) }
        } ended: { [result] error in
            result.finish(error)
        }
    }

    deinit { client.engine.stopObserving(id) }
}

/// The present result of a live query, for any number of readers.
private final class LatestResult: Sendable {
    private struct State {
        var result: [Found] = []
        /// How many changes there were; 0 before the first result.
        var version = 0
        var isOver = false
        var error: RealtimeError?
    }

    private let state = Mutex(State())
    private let waiters = TaskWaiters()

    func report(_ change: LiveChange) {
        state.withLock { state in
            state.result.apply(change.steps)
            state.version += 1
        }
        waiters.resumeAll(.success(()))
    }

    /// - Parameter error: why the query has ended by itself.
    func finish(_ error: RealtimeError? = nil) {
        state.withLock { state in
            if !state.isOver { state.error = error }
            state.isOver = true
        }
        waiters.resumeAll(.success(()))
    }

    /// - Parameter version: of the result that the reader has; becomes that of the new one.
    /// - Returns: nil at the end, and if the task is cancelled.
    func next(after version: inout Int) async throws(RealtimeError) -> [Found]? {
        while !Task.isCancelled {
            let known = version
            let (found, newest, isOver, error) = state.withLock { state in
                (
                    state.version > known ? state.result : nil, state.version, state.isOver,
                    state.error
                )
            }
            version = newest
            if let found { return found }
            if let error { throw error }
            if isOver { return nil }
            let isWoken: Void? = try? await waiters.wait {
                state.withLock { $0.isOver || $0.version > newest ? .success(()) : nil }
            }
            guard isWoken != nil else { return nil }
        }
        return nil
    }
}
