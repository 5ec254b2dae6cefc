package import Wire

/// How the objects of one type are stored in documents.
package struct Entity: Sendable {
    /// The name of the type.
    package let name: String
    package let collection: String
    /// How the ids of new documents are drawn.
    package let ids: NewDocumentIDs
    package let relationships: [Relationship]

    package init(
        name: String, collection: String, ids: NewDocumentIDs, relationships: [Relationship]
    ) {
        self.name = name
        self.collection = collection
        self.ids = ids
        self.relationships = relationships
    }

    func relationship(_ name: String) -> Relationship? {
        relationships.first { $0.name.hasSameBytes(as: name) }
    }

    /// Whether objects of other entities must be searched for references to its own.
    package var hasSearched: Bool { relationships.contains { !$0.storage } }

    /// Those whose references its own documents contain.
    var storedRelationships: [Relationship] { relationships.filter { $0.storage } }
}

/// A relationship, as one of its ends sees it.
package struct Relationship: Sendable, Equatable {
    /// The property.
    package let name: String
    package let isToMany: Bool
    /// The collection of this end.
    package let collection: String
    /// The collection of the other end.
    package let destination: String
    /// The field that contains the id of the other end's object, or an array of ids. Without
    /// storage it is not in the documents, only in what models are decoded from.
    package let field: String
    /// Whether documents of this end contain the references.
    package let storage: Bool
    /// The other end's name of the relationship; nil if it has none.
    package let inverse: String?

    package init(
        name: String, isToMany: Bool, collection: String, destination: String, field: String,
        storage: Bool, inverse: String?
    ) {
        self.name = name
        self.isToMany = isToMany
        self.collection = collection
        self.destination = destination
        self.field = field
        self.storage = storage
        self.inverse = inverse
    }

    /// Names the relationship among those of all entities.
    var key: ByteText { ByteText(collection + "." + name) }
}

/// The entities of a client, by collection. Its relationships are consistent.
package struct ModelMap: Sendable {
    private var byCollection: [ByteText: Entity] = [:]
    private var leading: [ByteText: [Relationship]] = [:]

    /// - Throws: `.invalidArgument`: two entities have the same collection, a destination is not
    ///   among them, the ends of a relationship contradict each other, or neither has storage.
    package init(_ entities: [Entity]) throws(RealtimeError) {
        for entity in entities {
            if let other = byCollection.updateValue(entity, forKey: ByteText(entity.collection)) {
                throw RealtimeError(
                    .invalidArgument,
                    "\(other.name) and \(entity.name) have the same collection, "
                        + "\(entity.collection)")
            }
        }
        for entity in entities {
            try checkFields(of: entity)
            for relationship in entity.relationships {
                try check(relationship, of: entity)
                guard relationship.storage else { continue }
                leading[ByteText(relationship.destination), default: []].append(relationship)
            }
        }
    }

    var entities: some Collection<Entity> { byCollection.values }

    package subscript(collection: String) -> Entity? { byCollection[ByteText(collection)] }

    /// The relationships with storage that lead to a collection.
    func incoming(_ collection: String) -> [Relationship] {
        leading[ByteText(collection)] ?? []
    }

    /// The same relationship as the other end sees it.
    func inverse(of relationship: Relationship) -> Relationship? {
        relationship.inverse.flatMap { self[relationship.destination]?.relationship($0) }
    }

    /// The entity with a name.
    /// - Throws: `.invalidArgument` if there is none.
    package func entity(named name: String) throws(RealtimeError) -> Entity {
        guard let entity = entities.first(where: { $0.name.hasSameBytes(as: name) }) else {
            throw RealtimeError(.invalidArgument, "\(name.quoted()) is not one of the models")
        }
        return entity
    }

    private func checkFields(of entity: Entity) throws(RealtimeError) {
        var owners = [ByteText("_id"): "id"]
        for relationship in entity.relationships {
            let other = owners.updateValue(relationship.name, forKey: ByteText(relationship.field))
            guard let other else { continue }
            throw RealtimeError(
                .invalidArgument,
                "\(entity.name).\(other) and \(entity.name).\(relationship.name) have the same "
                    + "field, \(relationship.field)")
        }
    }

    private func check(_ relationship: Relationship, of entity: Entity) throws(RealtimeError) {
        let name = "\(entity.name).\(relationship.name)"
        func fault(_ text: String) -> RealtimeError {
            RealtimeError(.invalidArgument, "the relationship \(name) \(text)")
        }
        guard let destination = self[relationship.destination] else {
            throw fault("leads to \(relationship.destination), which has no model")
        }
        guard let inverseName = relationship.inverse else {
            guard relationship.storage else { throw fault("has neither storage nor an inverse") }
            return
        }
        guard let inverse = destination.relationship(inverseName) else {
            throw fault("has the inverse \(inverseName), which \(destination.name) does not have")
        }
        guard inverse.destination.hasSameBytes(as: entity.collection),
            inverse.inverse.hasSameBytes(as: relationship.name)
        else {
            throw fault(
                "has the inverse \(destination.name).\(inverseName), whose inverse is "
                    + "\(inverse.destination).\(inverse.inverse ?? "none")")
        }
        guard relationship.storage || inverse.storage else {
            throw fault("has storage at neither end")
        }
    }
}

extension EJSONObject {
    package func without(_ names: [String]) -> EJSONObject {
        var copy = self
        for name in names { copy[name] = nil }
        return copy
    }
}

extension EJSON {
    /// An id in messages.
    package var idText: String {
        switch self {
        case .string(let text): text
        case .objectID(let id): id.hex
        default: text
        }
    }
}
