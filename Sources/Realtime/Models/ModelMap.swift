internal import Wire

/// How the objects of one type are stored in documents.
struct Entity: Sendable {
    /// The name of the type, for messages.
    let name: String
    let collection: String
    let relationships: [Relationship]

    func relationship(_ name: String) -> Relationship? {
        relationships.first { $0.name == name }
    }

    /// Those whose references its own documents contain.
    var storedRelationships: [Relationship] { relationships.filter { $0.storage } }
}

/// A relationship, as one of its ends sees it.
struct Relationship: Sendable, Equatable {
    /// The property.
    let name: String
    let isToMany: Bool
    /// The collection of this end.
    let collection: String
    /// The collection of the other end.
    let destination: String
    /// The field that contains the id of the other end's object, or an array of ids. Without
    /// storage it is not in the documents, only in what models are decoded from.
    let field: String
    /// Whether documents of this end contain the references.
    let storage: Bool
    /// The other end's name of the relationship; nil if it has none.
    let inverse: String?

    /// Names the relationship among those of all entities.
    var key: String { collection + "." + name }
}

/// The entities of a client, by collection. Its relationships are consistent.
struct ModelMap: Sendable {
    private(set) var entities: [String: Entity] = [:]
    /// The relationships with storage that lead to a collection.
    private(set) var incoming: [String: [Relationship]] = [:]

    /// - Throws: `.invalidArgument`: two entities have the same collection, a destination is not
    ///   among them, the ends of a relationship contradict each other, or neither has storage.
    init(_ entities: [Entity]) throws(RealtimeError) {
        for entity in entities {
            if let other = self.entities.updateValue(entity, forKey: entity.collection) {
                throw RealtimeError(
                    .invalidArgument,
                    "\(other.name) and \(entity.name) have the same collection, "
                        + "\(entity.collection)")
            }
        }
        for entity in entities {
            for relationship in entity.relationships {
                try check(relationship, of: entity)
                guard relationship.storage else { continue }
                incoming[relationship.destination, default: []].append(relationship)
            }
        }
    }

    subscript(collection: String) -> Entity? { entities[collection] }

    /// The same relationship as the other end sees it.
    func inverse(of relationship: Relationship) -> Relationship? {
        relationship.inverse.flatMap { entities[relationship.destination]?.relationship($0) }
    }

    private func check(_ relationship: Relationship, of entity: Entity) throws(RealtimeError) {
        let name = "\(entity.name).\(relationship.name)"
        func fault(_ text: String) -> RealtimeError {
            RealtimeError(.invalidArgument, "the relationship \(name) \(text)")
        }
        guard let destination = entities[relationship.destination] else {
            throw fault("leads to \(relationship.destination), which has no model")
        }
        guard let inverseName = relationship.inverse else {
            guard relationship.storage else { throw fault("has neither storage nor an inverse") }
            return
        }
        guard let inverse = destination.relationship(inverseName) else {
            throw fault("has the inverse \(inverseName), which \(destination.name) does not have")
        }
        guard inverse.destination == entity.collection, inverse.inverse == relationship.name else {
            throw fault(
                "has the inverse \(destination.name).\(inverseName), whose inverse is "
                    + "\(inverse.destination).\(inverse.inverse ?? "none")")
        }
        guard relationship.storage || inverse.storage else {
            throw fault("has storage at neither end")
        }
    }
}
