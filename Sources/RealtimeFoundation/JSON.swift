public import Foundation
public import Realtime

// MARK: Decodable

extension REST.Response {
    /// Decodes the body as JSON.
    /// - Throws: `RealtimeError(.protocolViolation)`, which names the value that cannot be decoded.
    public func decoded<Value: Decodable>(
        as type: Value.Type = Value.self, by decoder: JSONDecoder = JSONDecoder()
    ) throws(RealtimeError) -> Value {
        try decoder.value(type, in: contents, "the body from \(url)")
    }
}

extension WebSocket.Message {
    /// Decodes the message as JSON.
    /// - Throws: `RealtimeError(.protocolViolation)`, which names the value that cannot be decoded.
    public func decoded<Value: Decodable>(
        as type: Value.Type = Value.self, by decoder: JSONDecoder = JSONDecoder()
    ) throws(RealtimeError) -> Value {
        try decoder.value(type, in: contents, "the message")
    }
}

extension EventSource.Event {
    /// Decodes the data as JSON.
    /// - Throws: `RealtimeError(.protocolViolation)`, which names the value that cannot be decoded.
    public func decoded<Value: Decodable>(
        as type: Value.Type = Value.self, by decoder: JSONDecoder = JSONDecoder()
    ) throws(RealtimeError) -> Value {
        try decoder.value(type, in: contents, "the event \"\(event)\"")
    }
}

extension LongPoll.Message {
    /// Decodes the data as JSON.
    /// - Throws: `RealtimeError(.protocolViolation)`, which names the value that cannot be decoded.
    public func decoded<Value: Decodable>(
        as type: Value.Type = Value.self, by decoder: JSONDecoder = JSONDecoder()
    ) throws(RealtimeError) -> Value {
        try decoder.value(type, in: contents, "the message")
    }
}

extension Spreadbot.Message {
    /// Decodes the data as JSON.
    /// - Throws: `RealtimeError(.protocolViolation)`, which names the value that cannot be decoded.
    public func decoded<Value: Decodable>(
        as type: Value.Type = Value.self, by decoder: JSONDecoder = JSONDecoder()
    ) throws(RealtimeError) -> Value {
        try decoder.value(type, in: contents, "the message \"\(event)\"")
    }
}

extension PusherEvent {
    /// Decodes the data as JSON.
    /// - Throws: `RealtimeError(.protocolViolation)`, which names the value that cannot be decoded.
    public func decoded<Value: Decodable>(
        as type: Value.Type = Value.self, by decoder: JSONDecoder = JSONDecoder()
    ) throws(RealtimeError) -> Value {
        try decoder.value(type, in: Data((data ?? "null").utf8), "the event \"\(eventName)\"")
    }
}

extension JSONDecoder {
    /// - Parameter text: the name of the JSON text in the error.
    fileprivate func value<Value: Decodable>(
        _ type: Value.Type, in json: Data, _ text: String
    ) throws(RealtimeError) -> Value {
        do {
            return try decode(type, from: json)
        } catch {
            throw RealtimeError(
                .protocolViolation, "\(text) cannot be read as \(type): \(Misfit(error))")
        }
    }
}

// MARK: Encodable

extension REST.Request.Body {
    /// A body with a value encoded as application/json.
    /// - Throws: `RealtimeError(.invalidArgument)`, which names the value that JSON cannot express.
    public static func json(
        encoding value: some Encodable, by encoder: JSONEncoder = JSONEncoder()
    ) throws(RealtimeError) -> Self {
        do {
            return .data(try encoder.encode(value), type: "application/json")
        } catch {
            throw RealtimeError(
                .invalidArgument,
                "\(type(of: value)) cannot be written as JSON: \(Misfit(error))")
        }
    }
}

// MARK: Requests

extension REST {
    /// Sends a GET request and decodes the response as JSON.
    /// - Throws: as `send`; `RealtimeError(.protocolViolation)` for a response that cannot be
    ///   decoded.
    public func get<Value: Decodable & Sendable>(
        _ path: String, as type: Value.Type, query: [(name: String, value: String)] = [],
        headers: [(name: String, value: String)] = [], by decoder: JSONDecoder = JSONDecoder()
    ) async throws -> Value {
        try await get(path, query: query, headers: headers).decoded(as: type, by: decoder)
    }

    /// Sends a POST request with a value encoded as JSON.
    /// - Throws: as `send`; `RealtimeError(.invalidArgument)` for a value that JSON cannot express.
    @discardableResult
    public func post(
        _ path: String, json value: some Encodable & Sendable,
        query: [(name: String, value: String)] = [],
        headers: [(name: String, value: String)] = [], by encoder: JSONEncoder = JSONEncoder()
    ) async throws -> Response {
        let body = try Request.Body.json(encoding: value, by: encoder)
        return try await post(path, body: body, query: query, headers: headers)
    }
}

/// An error of coding and its path. It omits the values, which may be secret.
private struct Misfit: CustomStringConvertible {
    let description: String

    init(_ error: any Error) {
        description =
            switch error {
            case DecodingError.keyNotFound(let key, let context):
                "\(Misfit.place(context.codingPath + [key])) is missing"
            case DecodingError.valueNotFound(let type, let context):
                "\(Misfit.place(context.codingPath)) is null, \(type) is expected"
            case DecodingError.typeMismatch(let type, let context):
                "\(Misfit.place(context.codingPath)) is not \(type)"
            case DecodingError.dataCorrupted(let context) where context.codingPath.isEmpty:
                "it is not JSON"
            case DecodingError.dataCorrupted(let context):
                "\(Misfit.place(context.codingPath)) has an invalid value"
            case EncodingError.invalidValue(_, let context):
                "\(Misfit.place(context.codingPath)) has an invalid value"
            default: "\(error)"
            }
    }

    /// As `users[2].name`.
    private static func place(_ path: [any CodingKey]) -> String {
        var text = ""
        for key in path {
            if let index = key.intValue {
                text += "[\(index)]"
            } else {
                text += text.isEmpty ? key.stringValue : ".\(key.stringValue)"
            }
        }
        return text.isEmpty ? "the whole" : text
    }
}
