package import Wire

/// A change of one object, in terms of its document. The references of relationships are not among
/// the fields: `links` has them.
package struct ObjectSave: Sendable {
    enum Kind: Sendable {
        case insert(EJSONObject)
        case update(EJSONObject, cleared: [String])
        case delete
    }

    /// How an object's references change.
    struct Link: Sendable {
        let relationship: Relationship
        /// Those of the old version; nil for those that are there when the save is planned.
        let known: [DocumentID]?
        /// All that are wanted, in their order.
        let wanted: [DocumentID]
    }

    let key: DocumentKey
    let kind: Kind
    let links: [Link]

    /// The insertion of an object.
    /// - Parameter document: all fields, also those of relationships without storage.
    package init(inserting key: DocumentKey, _ document: EJSONObject, _ entity: Entity) {
        self.init(
            key, .insert(entity.attributes(of: document)), entity, from: EJSONObject(),
            to: document)
    }

    /// The change of an object: the difference between two versions of it.
    package init(
        updating key: DocumentKey, from old: EJSONObject, to new: EJSONObject, _ entity: Entity
    ) {
        let changes = FieldChanges(from: entity.attributes(of: old), to: entity.attributes(of: new))
        self.init(
            key, .update(changes.fields, cleared: changes.cleared), entity, from: old, to: new)
    }

    /// The change of some fields of an object, whatever their values are.
    package init(setting fields: EJSONObject, of key: DocumentKey, _ entity: Entity) {
        self.key = key
        kind = .update(entity.attributes(of: fields), cleared: [])
        links = entity.relationships.filter { fields[$0.field] != nil }.map {
            Link(relationship: $0, known: nil, wanted: $0.references(in: fields))
        }
    }

    package init(deleting key: DocumentKey) {
        self.key = key
        kind = .delete
        links = []
    }

    private init(
        _ key: DocumentKey, _ kind: Kind, _ entity: Entity, from old: EJSONObject,
        to new: EJSONObject
    ) {
        self.key = key
        self.kind = kind
        links = entity.relationships.compactMap { relationship in
            let (before, wanted) = (
                relationship.references(in: old), relationship.references(in: new)
            )
            guard before != wanted else { return nil }
            return Link(relationship: relationship, known: before, wanted: wanted)
        }
    }
}

extension Entity {
    /// The fields that are not relationships.
    func attributes(of document: EJSONObject) -> EJSONObject {
        document.without(relationships.map { $0.field })
    }
}

/// Finds out which documents must be written to save a set of objects. A changed reference is
/// changed at both ends, as far as they have storage:
///
/// - To add an object to a relationship to one object replaces the old one.
/// - An object that can belong to only one other leaves the one to which it belonged.
/// - A deleted object is removed from the objects that know it by two-way storage. Other references
///   to it stay, and lead nowhere.
///
/// Insertions come first and deletions last, whatever the order of the set: so it may contain new
/// objects that refer to each other.
package struct ModelSavePlan: ~Copyable {
    private let map: ModelMap
    private let store: DocumentStore
    /// The documents that differ from the store; nil if they are gone.
    private var documents: [DocumentKey: EJSONObject?] = [:]
    /// Their keys, in the order in which they were first changed.
    private var order: [DocumentKey] = []
    /// For the relationships that were searched: the documents that contain references, by those to
    /// which they lead.
    private var owners: [ByteText: [DocumentID: [DocumentID]]] = [:]

    /// - Throws: `.invalidArgument` if an inserted object is there already, or only an object that
    ///   is not there could contain a reference; `.notFound` if an updated object is not there.
    package static func writes(
        _ saves: [ObjectSave], _ map: ModelMap, _ store: borrowing DocumentStore
    ) throws(RealtimeError) -> [DocumentWrite] {
        var plan = ModelSavePlan(map, copy store)
        for save in saves { try plan.setAttributes(save) }
        for save in saves { for link in save.links { try plan.set(link, of: save.key) } }
        for save in saves { plan.deleteIfWanted(save) }
        return plan.writes
    }

    private init(_ map: ModelMap, _ store: DocumentStore) {
        self.map = map
        self.store = store
    }

    // MARK: The documents as they will be

    private func document(_ key: DocumentKey) -> EJSONObject? {
        documents[key] ?? store.document(key)
    }

    private mutating func set(_ key: DocumentKey, _ fields: EJSONObject?) {
        for relationship in map[key.collection]?.storedRelationships ?? []
        where owners[relationship.key] != nil {
            let old = document(key).map { relationship.references(in: $0) } ?? []
            for target in old {
                owners[relationship.key]?[target]?.removeAll { $0 == key.id }
            }
            for target in fields.map({ relationship.references(in: $0) }) ?? [] {
                owners[relationship.key]?[target, default: []].append(key.id)
            }
        }
        if documents.updateValue(fields, forKey: key) == nil { order.append(key) }
    }

    private mutating func references(
        _ relationship: Relationship, of owner: DocumentID
    ) -> [DocumentID] {
        if relationship.storage {
            let key = DocumentKey(collection: relationship.collection, id: owner)
            return document(key).map { relationship.references(in: $0) } ?? []
        }
        guard let inverse = map.inverse(of: relationship) else { return [] }
        // Only the inverse knows: its documents are searched, once for the whole set.
        if owners[inverse.key] == nil { owners[inverse.key] = search(inverse) }
        return owners[inverse.key]?[owner] ?? []
    }

    private func search(_ relationship: Relationship) -> [DocumentID: [DocumentID]] {
        var found = relationship.owners(in: store)
        for key in order where key.collection.hasSameBytes(as: relationship.collection) {
            for target in store.document(key).map({ relationship.references(in: $0) }) ?? [] {
                found[target]?.removeAll { $0 == key.id }
            }
            for target in (documents[key] ?? nil).map({ relationship.references(in: $0) }) ?? [] {
                found[target, default: []].append(key.id)
            }
        }
        return found
    }

    // MARK: The objects

    private mutating func setAttributes(_ save: ObjectSave) throws(RealtimeError) {
        let old = document(save.key)
        switch save.kind {
        case .insert(let fields):
            guard old == nil else {
                throw RealtimeError(.invalidArgument, "\(name(save.key)) is there already")
            }
            set(save.key, fields)
        case .update(let fields, let cleared):
            guard var document = old else {
                throw RealtimeError(.notFound, "\(name(save.key)) is not there")
            }
            for field in fields.fields { document[field.name] = field.value }
            for name in cleared { document[name] = nil }
            set(save.key, document)
        case .delete: break
        }
    }

    private mutating func set(
        _ link: ObjectSave.Link, of key: DocumentKey
    ) throws(RealtimeError) {
        let relationship = link.relationship
        let known = link.known ?? references(relationship, of: key.id)
        let (old, new) = (Set(known), Set(link.wanted))
        for target in known where !new.contains(target) { unlink(relationship, key.id, target) }
        for target in link.wanted where !old.contains(target) {
            try self.link(relationship, key.id, target)
        }
        // The order of a stored array is the caller's.
        guard relationship.storage, relationship.isToMany else { return }
        let present = references(relationship, of: key.id)
        guard present != link.wanted, Set(present) == new else { return }
        setReferences(relationship, key.id) { $0 = link.wanted }
    }

    private mutating func deleteIfWanted(_ save: ObjectSave) {
        guard case .delete = save.kind, let document = document(save.key) else { return }
        for relationship in map[save.key.collection]?.storedRelationships ?? []
        where map.inverse(of: relationship)?.storage ?? false {
            for target in relationship.references(in: document) {
                unlink(relationship, save.key.id, target)
            }
        }
        set(save.key, nil)
    }

    // MARK: References

    private mutating func link(
        _ relationship: Relationship, _ owner: DocumentID, _ target: DocumentID
    ) throws(RealtimeError) {
        let inverse = map.inverse(of: relationship)
        if !relationship.isToMany {
            for old in references(relationship, of: owner) where old != target {
                unlink(relationship, owner, old)
            }
        }
        if let inverse, !inverse.isToMany {
            for old in references(inverse, of: target) where old != owner {
                unlink(relationship, old, target)
            }
        }
        let targetKey = DocumentKey(collection: relationship.destination, id: target)
        guard relationship.storage || document(targetKey) != nil else {
            throw RealtimeError(
                .invalidArgument,
                "\(name(targetKey)) is not there, and only it could contain a reference")
        }
        setReferences(relationship, owner) { if !$0.contains(target) { $0.append(target) } }
        if let inverse {
            setReferences(inverse, target) { if !$0.contains(owner) { $0.append(owner) } }
        }
    }

    private mutating func unlink(
        _ relationship: Relationship, _ owner: DocumentID, _ target: DocumentID
    ) {
        setReferences(relationship, owner) { $0.removeAll { $0 == target } }
        if let inverse = map.inverse(of: relationship) {
            setReferences(inverse, target) { $0.removeAll { $0 == owner } }
        }
    }

    /// Changes the references that a document contains, if it is there and contains any.
    private mutating func setReferences(
        _ relationship: Relationship, _ owner: DocumentID, _ change: (inout [DocumentID]) -> Void
    ) {
        let key = DocumentKey(collection: relationship.collection, id: owner)
        guard relationship.storage, var document = document(key) else { return }
        let old = relationship.references(in: document)
        var new = old
        change(&new)
        guard new != old else { return }
        document[relationship.field] = relationship.value(of: new)
        set(key, document)
    }

    // MARK: The result

    private var writes: [DocumentWrite] {
        var inserts: [DocumentWrite] = []
        var updates: [DocumentWrite] = []
        var removals: [DocumentWrite] = []
        for key in order {
            guard let id = key.id.value else { continue }
            switch (store.document(key), documents[key] ?? nil) {
            case (nil, let new?):
                inserts.append(.insert(key.collection, .object(new.with(id: id))))
            case (let old?, let new?):
                let changes = FieldChanges(from: old, to: new)
                guard !changes.isEmpty else { continue }
                updates.append(.update(key.collection, id: id, modifier: changes.modifier))
            case (_?, nil): removals.append(.remove(key.collection, id: id))
            case (nil, nil): break
            }
        }
        return inserts + updates + removals
    }

    private func name(_ key: DocumentKey) -> String {
        let entity = map[key.collection]?.name ?? key.collection
        return "\(entity) \(key.id.value?.idText ?? key.id.wire)"
    }
}

extension FieldChanges {
    /// Makes the changes with `$set` and `$unset`.
    fileprivate var modifier: EJSON {
        var modifier = EJSONObject()
        if !fields.isEmpty { modifier["$set"] = .object(fields) }
        if !cleared.isEmpty { modifier["$unset"] = .object(EJSONObject(cleared.map { ($0, "") })) }
        return .object(modifier)
    }
}
