internal import Engine
internal import Session
import Synchronization
public import Wire

/// Several subscriptions that are waited for together.
///
///     let loader = try SubscriptionLoader(client)
///     try loader.add("lists")
///     try loader.add("todos", with: list)
///     try loader.whenReady { error in show(error) }
///
/// They are released with the last reference to the loader, or by `close`, and are then kept for a
/// while (`DDPClient.Options.unusedSubscriptionTime`).
public final class SubscriptionLoader: Sendable {
    private let client: DDPClient
    private let number: UInt64
    private let gate = CallGate()

    /// - Throws: `RealtimeError` `.closed`.
    public init(_ client: DDPClient) throws(RealtimeError) {
        self.client = client
        number = try client.engine.makeLoader()
    }

    deinit { close() }

    /// Subscribes to a publication.
    /// - Throws: `RealtimeError` `.closed` once the loader or the client is closed.
    public func add(_ name: String, _ params: [EJSON] = []) throws(RealtimeError) {
        try client.engine.add(name, params, to: number)
    }

    /// Subscribes to a publication; see `DDPClient.call(_:with:options:)` for parameters.
    public func add<each Parameter: Encodable>(
        _ name: String, with parameters: repeat each Parameter
    ) throws {
        try add(name, try EJSON.parameters(repeat each parameters))
    }

    /// Subscribes to a publication.
    /// - Throws: as `add(_:_:)`.
    public func add(_ publication: DDPPublication) throws(RealtimeError) {
        try add(publication.name, publication.params)
    }

    /// Whether each subscription is ready or has failed.
    public var isReady: Bool { client.engine.isReady(loader: number) }

    /// The first error of a subscription that the server has ended; nil if there is none.
    public var error: DDPError? { client.engine.error(of: number) }

    /// Reports, once, that each subscription is ready or has failed. Those that are added meanwhile
    /// count, too.
    /// - Parameter handler: receives the first error. If they are all ready now, and it may run
    ///   here (it is isolated to the caller's actor, or it is isolated to none, and the client's
    ///   executor is `.loop`), it is called before this returns; otherwise later, as the client's
    ///   handlers are. It is not called any more once the loader or the client is closed.
    /// - Throws: as `add`.
    public func whenReady(
        isolation: isolated (any Actor)? = #isolation,
        @_inheritActorContext _ handler: @escaping @Sendable @isolated(any) (DDPError?) -> Void
    ) throws(RealtimeError) {
        try whenReady(Handler(escaping: handler), isolation)
    }

    /// Sets a handler that does not look at errors.
    public func whenReady(
        isolation: isolated (any Actor)? = #isolation,
        @_inheritActorContext _ handler: @escaping @Sendable @isolated(any) () -> Void
    ) throws(RealtimeError) {
        let handler = Handler(handler)
        try whenReady(Handler(handler.isolation) { _ in handler.call() }, isolation)
    }

    private func whenReady(
        _ handler: Handler<@Sendable (DDPError?) -> Void>, _ caller: (any Actor)?
    ) throws(RealtimeError) {
        let call: @Sendable (DDPError?) -> Void = { [gate, dispatcher = client.dispatcher] error in
            dispatcher.run(on: handler.isolation, gate: gate) { handler.call(error) }
        }
        guard try client.engine.whenReady(number, call) else { return }
        if let owner = handler.isolation, owner === caller {
            handler.call(error)
        } else {
            call(error)
        }
    }

    /// Waits until each subscription is ready or has failed.
    /// - Throws: `DDPError`: the first error of those that the server ended, and `.closed` when the
    ///   loader or the client is closed meanwhile; `RealtimeError` as `add`; `CancellationError`.
    public func ready() async throws { try await readiness().value() }

    /// What `whenReady` sets, once. The promise fails when the handler is released without a call,
    /// so nothing here may retain that.
    private func readiness() throws(RealtimeError) -> DDPPromise<Void> {
        let promise = DDPPromise<Void>()
        let answer = DDPAnswer(promise)
        let isReady = try client.engine.whenReady(number) { error in
            answer.set(error.map { .failure($0) } ?? .success(()))
        }
        if isReady { answer.set(error.map { .failure($0) } ?? .success(())) }
        return promise
    }

    /// Releases the subscriptions.
    public func close() {
        gate.close()
        try? client.engine.closeLoader(number)
    }
}

extension DDPClient {
    /// Subscribes to several publications, and waits until they are all ready.
    /// - Throws: `DDPError`: the first error of those that the server ended; `CancellationError`.
    public func load(_ publications: [DDPPublication]) async throws -> SubscriptionLoader {
        let loader = try SubscriptionLoader(self)
        for publication in publications { try loader.add(publication) }
        try await loader.ready()
        return loader
    }
}
