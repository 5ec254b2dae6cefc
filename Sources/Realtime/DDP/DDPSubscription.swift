internal import Engine
internal import Session
import Synchronization
public import Wire

/// A use of a publication, from `DDPClient.subscribe`. It is released with the last reference to
/// it, and is then kept for a while, so that using it again needs no request.
public final class DDPSubscription: Sendable {
    public let name: String
    private let client: DDPClient
    private let handle: UInt64
    private let firstDocuments: DDPPromise<Void>

    fileprivate init(
        _ client: DDPClient, _ name: String, _ handle: UInt64, _ firstDocuments: DDPPromise<Void>
    ) {
        self.client = client
        self.name = name
        self.handle = handle
        self.firstDocuments = firstDocuments
    }

    deinit { try? client.engine.release(handle) }

    /// Whether the initial documents are there.
    public var isReady: Bool { client.engine.isReady(handle) }

    /// Waits for the initial documents.
    /// - Throws: `DDPError` if the server ends the subscription before, and `.closed` if it is
    ///   given up, or the client closed; `CancellationError`.
    public func ready() async throws { try await firstDocuments.value() }

    /// Gives the subscription up. If nobody else uses it, it ends at once.
    public func stop() {
        firstDocuments.set(.failure(.givenUp))
        try? client.engine.stop(handle)
    }
}

/// A publication and its parameters.
public struct DDPPublication: Sendable {
    public var name: String
    public var params: [EJSON]

    public init(_ name: String, _ params: [EJSON] = []) {
        self.name = name
        self.params = params
    }
}

extension DDPClient {
    /// Subscribes to a publication, now or as soon as the connection is established, and again
    /// after each loss. Equal subscriptions are shared: the server is asked once.
    /// - Parameters:
    ///   - keep: how long it is kept after its last use; nil for `Options.unusedSubscriptionTime`.
    ///   - onStopped: called when the server ends it, with its error if there is one.
    public func subscribe(
        _ name: String, _ params: [EJSON] = [], keep: Duration? = nil,
        @_inheritActorContext onStopped: (@Sendable @isolated(any) (DDPError?) -> Void)? = nil
    ) throws(RealtimeError) -> DDPSubscription {
        let promise = DDPPromise<Void>()
        let answer = DDPAnswer(promise)
        var handlers = DDPSubscriptionHandlers()
        handlers.ready = { answer.set(.success(())) }
        let onStopped = Handler(onStopped)
        handlers.stopped = { [dispatcher] error in
            answer.set(.failure(error ?? .stopped))
            guard let onStopped else { return }
            dispatcher.run(on: onStopped.isolation) { onStopped.call(error) }
        }
        let handle = try engine.subscribe(name, params, keep: keep, handlers)
        return DDPSubscription(self, name, handle, promise)
    }
}

extension DDPError {
    fileprivate static let stopped = DDPError(
        .server, "stopped", reason: "the server has ended the subscription")
    fileprivate static let givenUp = DDPError(
        .closed, reason: "the subscription was given up")
}
