internal import Engine
internal import Session
import Synchronization
public import Wire

/// A call that was made.
public struct DDPCall: Sendable {
    /// What the stub returned; null without a stub, and if it failed. For an insert the document's
    /// id, for an update or removal the number of documents.
    public let stubValue: EJSON
    private let received = DDPPromise<EJSON>()
    private let done = DDPPromise<EJSON>()

    /// Waits for the result. The documents that the call wrote may follow.
    /// - Throws: `DDPFailure`; `CancellationError`, which does not end the call.
    public func result() async throws -> EJSON { try await received.value() }

    /// Waits until the call is done, and the documents that it wrote are there.
    /// - Throws: as `result`.
    @discardableResult
    public func completed() async throws -> EJSON { try await done.value() }

    /// - Parameter make: makes the call with these handlers.
    init(
        _ make: (DDPCallHandlers) throws(RealtimeError) -> Result<Session.DDPCall, DDPError>
    ) throws {
        let result = DDPAnswer(received)
        let end = DDPAnswer(done)
        let handlers = DDPCallHandlers(
            result: { result.set($0.mapError { DDPFailure($0) }) },
            completed: { end.set($0.mapError { DDPFailure($0) }) })
        switch try make(handlers) {
        case .success(let call): stubValue = call.value
        case .failure(let error): throw DDPFailure(error)
        }
    }
}

extension DDPClient {
    /// Calls a method, and waits until it is done and the documents that it wrote are there. Its
    /// stub runs before the wait. Without a connection the call waits for one. In a stub, call
    /// methods with the stub's context.
    /// - Throws: `DDPFailure`; `RealtimeError` for options that cannot be used, and on a closed
    ///   client; `CancellationError`, which does not end the call.
    @discardableResult
    public func call(
        _ method: String, _ params: [EJSON] = [], options: DDPCallOptions = DDPCallOptions()
    ) async throws -> EJSON {
        try await send(method, params, options: options).completed()
    }

    /// Calls a method without waiting: its stub has run when this returns.
    /// - Throws: `DDPFailure` if the stub threw and the options say so; `RealtimeError` as `call`.
    @discardableResult
    public func send(
        _ method: String, _ params: [EJSON] = [], options: DDPCallOptions = DDPCallOptions()
    ) throws -> DDPCall {
        let request = DDPRequest(method, params, try options.engine())
        return try DDPCall { (handlers) throws(RealtimeError) in
            try engine.call(request, handlers)
        }
    }

    /// Defines what calls of a method do to the local documents until the server has done it. The
    /// stub runs on the thread that calls the method, before the call returns, and must not wait
    /// for other threads. What it throws is kept from the caller, unless the call's options say
    /// otherwise; what it has done is undone then.
    /// - Parameter stub: returns the stub's value; nil for no stub.
    public func setStub(
        _ method: String, _ stub: (@Sendable (DDPStub, [EJSON]) throws -> EJSON)?
    ) throws(RealtimeError) {
        guard let stub else { return try engine.setStub(method, nil) }
        try engine.setStub(method) { context, params in
            do {
                return .success(try stub(DDPStub(context), params))
            } catch let error as DDPFailure {
                return .failure(error.error)
            } catch {
                return .failure(DDPError(.stub, reason: "\(error)"))
            }
        }
    }
}

/// Sets a promise. Once nobody can set it any more, because the client was closed, the promise
/// fails.
final class DDPAnswer<Value: Sendable>: Sendable {
    private let promise: DDPPromise<Value>

    init(_ promise: DDPPromise<Value>) { self.promise = promise }

    deinit { promise.set(.failure(.closed)) }

    func set(_ result: Result<Value, DDPFailure>) { promise.set(result) }
}

/// A value that comes later, once.
final class DDPPromise<Value: Sendable>: Sendable {
    private let state = Mutex<Result<Value, DDPFailure>?>(nil)
    private let waiters = TaskWaiters()

    /// Has no effect once there is a result.
    func set(_ result: Result<Value, DDPFailure>) {
        state.withLock { if $0 == nil { $0 = result } }
        waiters.resumeAll(.success(()))
    }

    func value() async throws -> Value {
        try await waiters.wait { state.withLock { $0 == nil ? nil : .success(()) } }
        guard let result = state.withLock({ $0 }) else { throw DDPFailure.closed }
        return try result.get()
    }
}
