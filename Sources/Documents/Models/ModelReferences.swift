package import Wire

// The references that documents contain, and the search for them (M18).
extension Relationship {
    /// The ids that a document contains. An empty, missing or null field has none.
    package func references(in fields: EJSONObject) -> [DocumentID] {
        switch fields[field] {
        case nil, .null: []
        case .array(let ids) where isToMany: ids.compactMap { Relationship.id($0) }
        case let id?: Relationship.id(id).map { [$0] } ?? []
        }
    }

    /// The field's value for these ids; nil for none: then the field is cleared.
    package func value(of ids: [DocumentID]) -> EJSON? {
        guard isToMany else { return ids.first?.value }
        return ids.isEmpty ? nil : .array(ids.compactMap { $0.value })
    }

    private static func id(_ value: EJSON) -> DocumentID? {
        value == .null ? nil : DocumentID(value)
    }

    /// The documents of this end that contain references, by the documents to which they lead.
    /// - Parameter targets: nil for all.
    func owners(
        in store: borrowing DocumentStore, of targets: Set<DocumentID>? = nil
    ) -> [DocumentID: [DocumentID]] {
        var owners: [DocumentID: [DocumentID]] = [:]
        for (id, fields) in store.documents(in: collection) {
            for target in references(in: fields) where targets?.contains(target) ?? true {
                owners[target, default: []].append(id)
            }
        }
        return owners
    }
}

extension ModelMap {
    /// Documents from which models can be decoded: with fields for the relationships that the other
    /// ends store. Each of these is searched for once.
    package func complete(
        _ found: [Found], _ entity: Entity, in store: borrowing DocumentStore
    ) -> [Found] {
        var found = found
        let ids = Set(found.map { $0.id })
        for relationship in entity.relationships where !relationship.storage && !ids.isEmpty {
            guard let inverse = inverse(of: relationship) else { continue }
            let owners = inverse.owners(in: store, of: ids)
            found = found.map { document in
                var fields = document.fields
                fields[relationship.field] = relationship.value(of: owners[document.id] ?? [])
                return Found(id: document.id, fields: fields)
            }
        }
        return found
    }
}
