public import Wire

// Parameters of the program's own types. `EJSONEncoder` encodes them; an object, a `DDPModel`,
// becomes its document's id, also inside arrays and other values.

extension EJSON {
    static func parameters<each Parameter: Encodable>(
        _ parameters: repeat each Parameter
    ) throws -> [EJSON] {
        var values: [EJSON] = []
        for parameter in repeat each parameters {
            let encoder = EJSONValueEncoder(codingPath: [EJSONKey(values.count)])
            try encoder.write(parameter)
            values.append(encoder.node.ejson)
        }
        return values
    }
}

extension DDPClient {
    /// Calls a method, and waits until it is done; see `call(_:_:options:)`.
    ///
    ///     try await client.call("moveTodo", with: todo, otherList, 3)
    ///
    /// - Parameter parameters: `Codable` values; objects of models become their ids.
    /// - Throws: also `EncodingError`.
    @discardableResult
    public func call<each Parameter: Encodable>(
        _ method: String, with parameters: repeat each Parameter,
        options: DDPCallOptions = DDPCallOptions()
    ) async throws -> EJSON {
        try await call(method, try EJSON.parameters(repeat each parameters), options: options)
    }

    /// Calls a method, and decodes its result.
    ///
    ///     let count = try await client.call("countTodos", with: list, returning: Int.self)
    ///
    /// - Throws: also `EncodingError`, and `DecodingError` for a result of another kind.
    public func call<each Parameter: Encodable, Result: Decodable & Sendable>(
        _ method: String, with parameters: repeat each Parameter, returning type: Result.Type,
        options: DDPCallOptions = DDPCallOptions()
    ) async throws -> Result {
        let params = try EJSON.parameters(repeat each parameters)
        let result = try await call(method, params, options: options)
        return try EJSONDecoder().decode(type, from: result)
    }

    /// Calls a method without waiting; see `send(_:_:options:)` and `call(_:with:options:)`.
    @discardableResult
    public func send<each Parameter: Encodable>(
        _ method: String, with parameters: repeat each Parameter,
        options: DDPCallOptions = DDPCallOptions()
    ) throws -> DDPCall {
        try send(method, try EJSON.parameters(repeat each parameters), options: options)
    }

    /// Subscribes to a publication; see `subscribe(_:_:keep:onStopped:)` and
    /// `call(_:with:options:)`.
    public func subscribe<each Parameter: Encodable>(
        _ name: String, with parameters: repeat each Parameter, keep: Duration? = nil,
        @_inheritActorContext onStopped: (@Sendable @isolated(any) (DDPError?) -> Void)? = nil
    ) throws -> DDPSubscription {
        try subscribe(
            name, try EJSON.parameters(repeat each parameters), keep: keep, onStopped: onStopped)
    }
}

extension DDPPublication {
    /// - Parameter parameters: see `DDPClient.call(_:with:options:)`.
    public init<each Parameter: Encodable>(
        _ name: String, with parameters: repeat each Parameter
    ) throws {
        self.init(name, try EJSON.parameters(repeat each parameters))
    }
}
