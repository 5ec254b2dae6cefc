/// Says more about a relationship of a model than its type does.
///
///     struct TodoList: DDPModel {
///         var id = String.randomID()
///         var name = ""
///         @Relationship(inverse: "list", storage: false) var todos: [Todo.Reference] = []
///     }
///     struct Todo: DDPModel {
///         var id = String.randomID()
///         @Relationship(inverse: "todos") var list: TodoList.Reference? = nil
///     }
///
/// Here only todos contain references (one-way storage): `todos` of a list is found by searching
/// the collection of todos for the list's id when the list is read, and to save it changes the
/// todos. With two-way storage, which is the default, both documents contain references, and saving
/// one side changes the other one too.
@propertyWrapper
public struct DDPRelationship<Value: DDPRelationshipValue>: Sendable {
    public var wrappedValue: Value
    let declaration: RelationshipDeclaration

    /// - Parameters:
    ///   - field: the name of the field. Default: the singular of the property's name with `Id`,
    ///     or with `Ids` for a relationship to many objects.
    ///   - inverse: the name of the other side's property, which must name this one as its inverse.
    ///     If `CodingKeys` rename a property, the name that they give it. Default: none.
    ///   - storage: whether documents of this side contain the reference. If not, those of the
    ///     other side must, and `inverse` is needed. Default: true.
    public init(
        wrappedValue: Value = .noReferences, field: String? = nil, inverse: String? = nil,
        storage: Bool = true
    ) {
        self.wrappedValue = wrappedValue
        declaration = RelationshipDeclaration(field: field, inverse: inverse, storage: storage)
    }
}

/// What `@Relationship` says.
struct RelationshipDeclaration: Sendable {
    var field: String?
    var inverse: String?
    var storage = true
}

extension DDPRelationship: Codable {
    public init(from decoder: any Decoder) throws {
        self.init(wrappedValue: try Value(from: decoder))
    }
    public func encode(to encoder: any Encoder) throws { try wrappedValue.encode(to: encoder) }
}

extension DDPRelationship: Equatable where Value: Equatable {
    public static func == (left: Self, right: Self) -> Bool {
        left.wrappedValue == right.wrappedValue
    }
}

extension DDPRelationship: Hashable where Value: Hashable {
    public func hash(into hasher: inout Hasher) { wrappedValue.hash(into: &hasher) }
}

/// The type of a relationship: `Model.Reference?` or `[Model.Reference]`.
public protocol DDPRelationshipValue: Codable, Sendable {
    static var isToMany: Bool { get }
    static var destination: any DDPModel.Type { get }
    static var noReferences: Self { get }
}

extension Optional: DDPRelationshipValue where Wrapped: DDPReferenceType {
    public static var isToMany: Bool { false }
    public static var destination: any DDPModel.Type { Wrapped.Model.self }
    public static var noReferences: Self { nil }
}

extension Array: DDPRelationshipValue where Element: DDPReferenceType {
    public static var isToMany: Bool { true }
    public static var destination: any DDPModel.Type { Element.Model.self }
    public static var noReferences: Self { [] }
}

/// `DDPReference`, whatever its model.
public protocol DDPReferenceType: Codable, Sendable {
    associatedtype Model: DDPModel
}

extension DDPReference: DDPReferenceType {}

// MARK: Finding the relationships of a type

/// A property that is declared with `@Relationship`.
protocol DeclaredRelationship {
    static var valueType: any DDPRelationshipValue.Type { get }
    var declaration: RelationshipDeclaration { get }
}

extension DDPRelationship: DeclaredRelationship {
    static var valueType: any DDPRelationshipValue.Type { Value.self }
}
