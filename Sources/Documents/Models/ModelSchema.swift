package import Wire

/// Entities as an EJSON value, for programs whose models are not Swift types. Names that follow
/// from others may be left out.
///
///     [{"name": "Todo", "collection": "todos", "ids": "strings", "relationships": [
///         {"name": "list", "to": "TodoList", "many": false, "field": "listId",
///          "storage": true, "inverse": "todos"}]}]
package enum ModelSchema {
    /// - Throws: `.invalidArgument` for what is not a schema, and for a relationship to a model
    ///   that it lacks. `ModelMap` checks whether the entities agree with each other.
    package static func entities(_ schema: EJSON) throws(RealtimeError) -> [Entity] {
        guard case .array(let models) = schema else {
            throw RealtimeError(.invalidArgument, "the schema is not an array of models")
        }
        var members: [Members] = []
        var collections: [ByteText: String] = [:]
        for (index, model) in models.enumerated() {
            let found = try Members(
                model, "model \(index) of the schema",
                ["name", "collection", "ids", "relationships"])
            let name = try found.name("name")
            let collection =
                try found.optionalName("collection") ?? ModelNames.collection(ofType: name)
            guard collections.updateValue(collection, forKey: ByteText(name)) == nil else {
                throw RealtimeError(.invalidArgument, "the schema has two models named \(name)")
            }
            members.append(found)
        }
        var entities: [Entity] = []
        for model in members { entities.append(try entity(model, collections)) }
        return entities
    }

    private static func entity(
        _ model: Members, _ collections: [ByteText: String]
    ) throws(RealtimeError) -> Entity {
        let name = try model.name("name")
        let collection = collections[ByteText(name)] ?? ""
        var relationships: [Relationship] = []
        for value in try model.array("relationships") {
            let one = try Members(
                value, "a relationship of \(name)",
                ["name", "to", "many", "field", "storage", "inverse"])
            let (label, other) = (try one.name("name"), try one.name("to"))
            guard let destination = collections[ByteText(other)] else {
                throw RealtimeError(
                    .invalidArgument,
                    "the relationship \(name).\(label) leads to \(other), which the schema lacks")
            }
            let isToMany = try one.flag("many") ?? false
            let field = try one.optionalName("field")
            relationships.append(
                Relationship(
                    name: label, isToMany: isToMany, collection: collection,
                    destination: destination,
                    field: field ?? ModelNames.field(ofRelationship: label, isToMany: isToMany),
                    storage: try one.flag("storage") ?? true,
                    inverse: try one.optionalName("inverse")))
        }
        return Entity(
            name: name, collection: collection, ids: try ids(model), relationships: relationships)
    }

    private static func ids(_ model: Members) throws(RealtimeError) -> NewDocumentIDs {
        switch try model.optionalName("ids") {
        case nil, "strings": return .strings
        case "objectIDs": return .objectIDs
        case let other?:
            throw RealtimeError(
                .invalidArgument,
                "ids of \(try model.name("name")) is \(other.quoted()), strings or objectIDs is "
                    + "expected")
        }
    }

    /// The schema of entities, with all names.
    package static func value(_ entities: [Entity]) -> EJSON {
        var names: [ByteText: String] = [:]
        for entity in entities { names[ByteText(entity.collection)] = entity.name }
        return .array(
            entities.map { entity in
                let relationships = entity.relationships.map { one in
                    let other = names[ByteText(one.destination)] ?? ""
                    var value: EJSONObject = [
                        "name": .string(one.name), "to": .string(other),
                        "many": .bool(one.isToMany), "field": .string(one.field),
                        "storage": .bool(one.storage),
                    ]
                    if let inverse = one.inverse { value["inverse"] = .string(inverse) }
                    return EJSON.object(value)
                }
                return [
                    "name": .string(entity.name), "collection": .string(entity.collection),
                    "ids": entity.ids == .strings ? "strings" : "objectIDs",
                    "relationships": .array(relationships),
                ]
            })
    }
}

/// The members of an object of a schema.
private struct Members {
    let object: EJSONObject
    let place: String

    /// - Parameter known: the names that it may have.
    init(_ value: EJSON, _ place: String, _ known: [String]) throws(RealtimeError) {
        guard case .object(let object) = value else {
            throw RealtimeError(.invalidArgument, "\(place) is not an object")
        }
        for field in object.fields where !known.contains(where: field.name.hasSameBytes) {
            throw RealtimeError(
                .invalidArgument, "\(place) has the unknown member \(field.name.quoted())")
        }
        self.object = object
        self.place = place
    }

    func name(_ member: String) throws(RealtimeError) -> String {
        guard let name = try optionalName(member) else {
            throw RealtimeError(.invalidArgument, "\(place) has no \(member)")
        }
        return name
    }

    func optionalName(_ member: String) throws(RealtimeError) -> String? {
        switch object[member] {
        case nil, .null: return nil
        case .string(let text) where !text.isEmpty: return text
        default:
            throw RealtimeError(.invalidArgument, "\(member) of \(place) is not a text")
        }
    }

    func flag(_ member: String) throws(RealtimeError) -> Bool? {
        switch object[member] {
        case nil, .null: return nil
        case .bool(let flag): return flag
        default:
            throw RealtimeError(.invalidArgument, "\(member) of \(place) is not true or false")
        }
    }

    func array(_ member: String) throws(RealtimeError) -> [EJSON] {
        switch object[member] {
        case nil, .null: return []
        case .array(let values): return values
        default: throw RealtimeError(.invalidArgument, "\(member) of \(place) is not an array")
        }
    }
}
