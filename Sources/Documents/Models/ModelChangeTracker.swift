import Wire

/// Which objects were inserted, updated and deleted together; each is in one list at most.
package struct ObjectChanges: Sendable {
    package var inserted: [DocumentKey] = []
    package var updated: [DocumentKey] = []
    package var deleted: [DocumentKey] = []
    /// Those of `updated` to which references have come or gone, in other documents, or whose
    /// references lead to objects that have come or gone.
    package var related: Set<DocumentKey> = []

    package var isEmpty: Bool { inserted.isEmpty && updated.isEmpty && deleted.isEmpty }
}

/// Turns changes of documents into changes of objects (M18):
///
/// - An object is updated if its document has changed; if a reference to it has come or gone in
///   another document; and if an object to which it refers has come or gone.
/// - Documents of collections without a model are left out.
///
/// It remembers which document refers to which, so that a change costs no search.
package struct ModelChangeTracker: Sendable {
    private let map: ModelMap
    /// The documents that are there, of collections with a model.
    private var present: Set<DocumentKey> = []
    /// For each relationship with storage the documents that contain references, by those to which
    /// they lead.
    private var owners: [ByteText: [DocumentID: Set<DocumentID>]] = [:]

    package init(_ map: ModelMap, _ store: borrowing DocumentStore) {
        self.map = map
        for entity in map.entities {
            for (id, fields) in store.documents(in: entity.collection) {
                present.insert(DocumentKey(collection: entity.collection, id: id))
                for relationship in entity.storedRelationships {
                    for target in relationship.references(in: fields) {
                        remember(relationship, id, target)
                    }
                }
            }
        }
    }

    /// - Parameter changes: those of one notification. The tracker may have seen them already,
    ///   because it has begun with documents that were newer than the notification.
    package mutating func track(_ changes: [DocumentChange]) -> ObjectChanges {
        var result = ObjectChanges()
        var (touched, related): ([DocumentKey], [DocumentKey]) = ([], [])
        for change in changes {
            guard let entity = map[change.key.collection] else { continue }
            let ends = entity.storedRelationships.flatMap { follow($0, change) }
            switch (change.before, change.after) {
            case (nil, _):
                guard present.insert(change.key).inserted else { continue }
                result.inserted.append(change.key)
            case (_, nil):
                guard present.remove(change.key) != nil else { continue }
                result.deleted.append(change.key)
            case (_?, _?): touched.append(change.key)
            }
            related += ends
        }
        for key in result.inserted + result.deleted { related += referring(to: key) }
        var reported = Set(result.inserted + result.deleted)
        result.related = Set(related.filter { present.contains($0) && !reported.contains($0) })
        result.updated = (touched + related).filter {
            present.contains($0) && reported.insert($0).inserted
        }
        return result
    }

    /// Takes over the references of a document that has changed.
    /// - Returns: the objects to which they lead or led.
    private mutating func follow(
        _ relationship: Relationship, _ change: DocumentChange
    ) -> [DocumentKey] {
        let old = change.before.map { relationship.references(in: $0) } ?? []
        let new = change.after.map { relationship.references(in: $0) } ?? []
        let (known, kept) = (Set(old), Set(new))
        let gone = old.filter { !kept.contains($0) }
        let come = new.filter { !known.contains($0) }
        for target in gone { forget(relationship, change.key.id, target) }
        for target in new { remember(relationship, change.key.id, target) }
        return (gone + come).map { DocumentKey(collection: relationship.destination, id: $0) }
    }

    /// The objects whose documents contain a reference.
    private func referring(to key: DocumentKey) -> [DocumentKey] {
        var found: [DocumentKey] = []
        for relationship in map.incoming(key.collection) {
            for owner in owners[relationship.key]?[key.id] ?? [] {
                found.append(DocumentKey(collection: relationship.collection, id: owner))
            }
        }
        return found
    }

    private mutating func remember(
        _ relationship: Relationship, _ owner: DocumentID, _ target: DocumentID
    ) {
        owners[relationship.key, default: [:]][target, default: []].insert(owner)
    }

    private mutating func forget(
        _ relationship: Relationship, _ owner: DocumentID, _ target: DocumentID
    ) {
        owners[relationship.key]?[target]?.remove(owner)
        if owners[relationship.key]?[target]?.isEmpty ?? false {
            owners[relationship.key]?[target] = nil
        }
    }
}

// MARK: Merging

extension ObjectChanges: MergeableChange {
    package var size: Int { inserted.count + updated.count + deleted.count }

    private enum Kind { case inserted, updated, deleted }

    package static func merged(_ changes: ArraySlice<ObjectChanges>) -> ObjectChanges {
        var kinds: [DocumentKey: Kind] = [:]
        var order: [DocumentKey] = []
        for change in changes {
            let all =
                change.inserted.map { ($0, Kind.inserted) } + change.updated.map { ($0, .updated) }
                + change.deleted.map { ($0, .deleted) }
            for (key, kind) in all {
                if kinds[key] == nil { order.append(key) }
                switch (kinds[key], kind) {
                // The object is back, or gone again before anybody saw it.
                case (.deleted, .inserted): kinds[key] = .updated
                case (.inserted, .deleted): kinds[key] = nil
                case (.inserted, .updated): break
                default: kinds[key] = kind
                }
            }
        }
        var result = ObjectChanges()
        for key in order {
            switch kinds.removeValue(forKey: key) {
            case .inserted: result.inserted.append(key)
            case .updated: result.updated.append(key)
            case .deleted: result.deleted.append(key)
            case nil: break
            }
        }
        return result
    }
}
