public import Wire

/// A type of the application that the server has registered with `EJSON.addType`.
///
///     struct Money: EJSONType {
///         static let ejsonName = "Money"
///         var cents: Double
///         var ejsonValue: EJSON { .number(cents) }
///         init(ejsonValue: EJSON) throws { … }
///     }
///
///     try await client.call("pay", [EJSON(money)])
///     let price = try document["price"]?.decoded(as: Money.self)
///
/// Values of types that the program does not ask for stay as they are, `EJSON.custom`.
public protocol EJSONType {
    /// Its name at the server.
    static var ejsonName: String { get }

    /// The value as plain JSON: strings, numbers, bools, null, and arrays and objects of them.
    var ejsonValue: EJSON { get }

    /// Decodes what `ejsonValue` returned, here or at the server.
    init(ejsonValue: EJSON) throws
}

extension EJSON {
    public init(_ value: some EJSONType) {
        self = .custom(EJSONCustom(type: type(of: value).ejsonName, value: value.ejsonValue))
    }

    /// The value of a type of the application; nil if this is a value of another type.
    /// - Throws: what the type's initializer throws.
    public func decoded<Value: EJSONType>(as type: Value.Type = Value.self) throws -> Value? {
        guard case .custom(let custom) = self, custom.type.utf8.elementsEqual(Value.ejsonName.utf8)
        else { return nil }
        return try Value(ejsonValue: custom.value)
    }
}
