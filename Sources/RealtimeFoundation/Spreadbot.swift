public import Foundation
public import Realtime

extension Spreadbot {
    /// Sets the handler of messages, which receives their data as `Data`: `onMessage(as: Data.self)
    /// { id, event, data in … }`. See `onMessage(_:)`.
    public func onMessage(
        as _: Data.Type,
        @_inheritActorContext _ handler:
            @escaping @Sendable @isolated(any) (
                _ id: String, _ event: String, _ data: Data
            ) -> Void
    ) {
        onMessage(
            by: Handler(handler).map { handler in
                Handler(handler.isolation) { handler.call($0, $1, Data($2)) }
            })
    }

    /// Sends bytes; see `sendMessageString`.
    public func sendMessageBinary(
        message: Data, @_inheritActorContext completion: Completion? = nil
    ) {
        sendMessageBinary(message: [UInt8](message), completion: completion)
    }

    /// Sends bytes, and waits until the server has them.
    /// - Throws: as `sendMessageString`.
    public func sendMessageBinary(message: Data) async throws {
        try await sendMessageBinary(message: [UInt8](message))
    }
}

extension SpreadbotREST {
    /// Sends bytes as application/json and waits for the response.
    /// - Throws: as `getData`.
    @discardableResult
    public func postData(path: String, payload: Data) async throws -> REST.Response {
        try await postData(path: path, payload: .data(payload, type: "application/json"))
    }

    /// Sends bytes as application/json.
    /// - Parameter onSuccess: receives a 2xx response; its `contents` are the body.
    /// - Parameter onError: receives any other result.
    public func postData(
        path: String, payload: Data, @_inheritActorContext onSuccess: @escaping Success,
        @_inheritActorContext onError: @escaping Failure
    ) {
        postData(
            path: path, payload: .data(payload, type: "application/json"), onSuccess: onSuccess,
            onError: onError)
    }

    /// Gets a value that the server sends as JSON.
    /// - Throws: `RealtimeError`, `.protocolViolation` for a response that cannot be decoded;
    ///   `REST.Failure`; `CancellationError`.
    public func getData<Value: Decodable & Sendable>(
        path: String, as type: Value.Type, by decoder: JSONDecoder = JSONDecoder()
    ) async throws -> Value {
        try await getData(path: path).decoded(as: type, by: decoder)
    }

    /// Sends a value as JSON and waits for the response.
    /// - Throws: `RealtimeError`, `.invalidArgument` for a value that JSON cannot express;
    ///   `REST.Failure`; `CancellationError`.
    @discardableResult
    public func postData(
        path: String, json value: some Encodable & Sendable,
        by encoder: JSONEncoder = JSONEncoder()
    ) async throws -> REST.Response {
        try await postData(path: path, payload: .json(encoding: value, by: encoder))
    }
}
