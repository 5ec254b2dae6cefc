internal import Documents
public import Wire

/// A type whose values are documents of a collection. It must be a struct.
///
///     struct Todo: DDPModel {
///         var id = String.randomID()
///         var text = ""
///         var done = false
///         var due: EJSONDate?
///         @Relationship(inverse: "todos") var list: TodoList.Reference? = nil
///     }
///
/// The collection is named after the type, `todos`, and each property has the field of the same
/// name; `CodingKeys` give it another one. The property `id` has the field `_id`. A property of
/// type `Other.Reference?` or `[Other.Reference]` is a relationship, with the field `listId` or
/// `listIds`; `@Relationship` says more about it.
///
/// `DDPModels` reads, saves and observes models.
///
/// A document may lack fields, because publications choose which ones they publish: a property
/// without a field has the value of `init()`. Nil is stored by leaving the field out, or as null if
/// `init()` has another value. A null field is nil, and cannot be decoded for a property that is
/// not optional. Fields that the model does not know stay as they are when an object is saved; but
/// a property that is an object of its own is one field, which is replaced as a whole.
public protocol DDPModel: Codable, EJSONDocument, Identifiable, Sendable
where ID: DDPDocumentID {
    /// Creates a value with the defaults of all properties. A type whose properties have default
    /// values has this already; if it is public, declare `public init() {}`.
    init()

    /// The document's id.
    var id: ID { get }

    /// The name of the collection. Default: the plural of the type's name, with its first letter in
    /// lower case: `todoItems` for `TodoItem`.
    static var collection: String { get }
}

extension DDPModel {
    public static var collection: String {
        ModelNames.collection(ofType: String(describing: Self.self))
    }

    /// A reference to an object of this model: the type of relationships.
    public typealias Reference = DDPReference<Self>

    /// Says more about a relationship; see `DDPRelationship`.
    public typealias Relationship<Value: DDPRelationshipValue> = DDPRelationship<Value>

    /// A reference to this object.
    public var reference: Reference { Reference(id: id) }

    /// The id as the value of a field.
    public var ejsonID: EJSON { id.ejson }
}

// MARK: Ids

/// The id of a document: a `String` or an `ObjectID`.
public protocol DDPDocumentID: Hashable, Sendable, Codable {
    var ejson: EJSON { get }

    /// - Returns: nil if the value is of another kind.
    init?(ejson: EJSON)

    /// An id for a new document, which nobody can guess.
    static func randomID() -> Self
}

extension String: DDPDocumentID {
    public var ejson: EJSON { .string(self) }

    public init?(ejson: EJSON) {
        guard case .string(let text) = ejson else { return nil }
        self = text
    }

    /// 17 characters, as Meteor's own ids have.
    public static func randomID() -> String {
        String.random(17, of: "23456789ABCDEFGHJKLMNPQRSTWXYZabcdefghijkmnopqrstuvwxyz")
    }

    fileprivate static func random(_ count: Int, of characters: StaticString) -> String {
        let text = (0..<count).map { _ in
            characters.utf8Start[Int.random(in: 0..<characters.utf8CodeUnitCount)]
        }
        return String(decoding: text, as: UTF8.self)
    }
}

extension ObjectID: DDPDocumentID {
    public static func randomID() -> ObjectID {
        while true {
            if let id = ObjectID(hex: .random(24, of: "0123456789abcdef")) { return id }
        }
    }
}

// MARK: References

/// The id of an object, typed by its model. The object need not be there.
public struct DDPReference<Model: DDPModel>: Hashable, Identifiable, Sendable {
    public let id: Model.ID

    public init(id: Model.ID) { self.id = id }
    public init(_ object: Model) { id = object.id }
}

extension DDPReference: EJSONConvertible {
    public var ejson: EJSON { id.ejson }

    public init?(ejson: EJSON) {
        guard let id = Model.ID(ejson: ejson) else { return nil }
        self.init(id: id)
    }
}
