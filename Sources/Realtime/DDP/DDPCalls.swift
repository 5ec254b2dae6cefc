internal import Engine
internal import Session
import Synchronization
public import Wire

/// A call that was made.
public struct DDPCall: Sendable {
    /// What the stub returned; null without a stub, and if it failed. For an insert the document's
    /// id, for an update or removal the number of documents.
    public let stubValue: EJSON
    private let answers: DDPCallAnswers

    /// Waits for the result. The documents that the call wrote may follow.
    /// - Throws: `DDPError`; `CancellationError`, which does not end the call.
    public func result() async throws -> EJSON { try await answers.received.value() }

    /// Waits until the call is done, and the documents that it wrote are there.
    /// - Throws: as `result`.
    @discardableResult
    public func completed() async throws -> EJSON { try await answers.done.value() }

    /// - Parameter make: makes the call with these handlers.
    init(
        _ make: (DDPCallHandlers) throws(RealtimeError) -> Result<Session.DDPCall, DDPError>
    ) throws {
        let answers = DDPCallAnswers()
        self.init(try make(answers.makeHandlers()).get(), answers)
    }

    init(_ call: Session.DDPCall, _ answers: DDPCallAnswers) {
        stubValue = call.value
        self.answers = answers
    }

    /// A call that has failed before it was sent.
    init(failed error: DDPError) {
        stubValue = .null
        answers = DDPCallAnswers()
        answers.received.set(.failure(error))
        answers.done.set(.failure(error))
    }
}

/// What a call is answered.
struct DDPCallAnswers: Sendable {
    let received = DDPPromise<EJSON>()
    let done = DDPPromise<EJSON>()

    /// Handlers that set the answers. Once they are released, no answer can follow.
    func makeHandlers() -> DDPCallHandlers {
        let (result, end) = (DDPAnswer(received), DDPAnswer(done))
        return DDPCallHandlers(result: { result.set($0) }, completed: { end.set($0) })
    }
}

extension DDPClient {
    /// Calls a method, and waits until it is done and the documents that it wrote are there. Its
    /// stub runs before the wait. Without a connection the call waits for one. In a stub, call
    /// methods with the stub's context.
    /// - Throws: `DDPError`; `RealtimeError` for options that cannot be used, `.queueFull` if
    ///   65,536 calls have not ended, `.closed`; `CancellationError`, which does not end the call.
    @discardableResult
    public func call(
        _ method: String, _ params: [EJSON] = [], options: DDPCallOptions = DDPCallOptions()
    ) async throws -> EJSON {
        try await send(method, params, options: options).completed()
    }

    /// Calls a method without waiting: its stub has run when this returns.
    /// - Throws: `DDPError` if the stub threw and the options say so; `RealtimeError` as `call`.
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
    /// stub runs on the thread that calls the method, before the call returns, whatever
    /// `DDPClient.Options.executor` says: its result is the call's, and other threads wait for the
    /// documents meanwhile. So it must not wait for other threads. If it throws, the call is sent
    /// nevertheless, and what the stub has done stays until the server has done the call. With
    /// `throwStubErrors` it is undone at once, the caller gets the error, and nothing is sent.
    /// - Parameter stub: returns the stub's value; nil for no stub.
    public func setStub(
        _ method: String, _ stub: (@Sendable (DDPStub, [EJSON]) throws -> EJSON)?
    ) throws(RealtimeError) {
        guard let stub else { return try engine.setStub(method, nil) }
        try engine.setStub(method) { context, params in
            do {
                return .success(try stub(DDPStub(context), params))
            } catch let error as DDPError {
                return .failure(error)
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

    deinit { promise.set(.failure(.clientClosed)) }

    func set(_ result: Result<Value, DDPError>) { promise.set(result) }
}

extension DDPError {
    fileprivate static let clientClosed = DDPError(.closed, reason: "the client is closed")
}

/// A value that comes later, once.
final class DDPPromise<Value: Sendable>: Sendable {
    private let state = Mutex<Result<Value, DDPError>?>(nil)
    private let waiters = TaskWaiters()

    /// Has no effect once there is a result.
    func set(_ result: Result<Value, DDPError>) {
        state.withLock { if $0 == nil { $0 = result } }
        waiters.resumeAll(.success(()))
    }

    func value() async throws -> Value {
        try await waiters.wait { state.withLock { $0 == nil ? nil : .success(()) } }
        guard let result = state.withLock({ $0 }) else { throw DDPError.clientClosed }
        return try result.get()
    }
}
