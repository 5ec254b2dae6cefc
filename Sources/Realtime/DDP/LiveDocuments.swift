internal import Documents
internal import Wire

/// The documents of a live query's result.
struct LiveDocuments: Sendable {
    private(set) var fields: [DocumentID: EJSONObject] = [:]
    /// In the result's order; empty unless it is kept.
    private(set) var order: [DocumentID] = []

    /// - Parameter edit: the same change by positions, to keep the order; nil not to.
    mutating func apply(_ change: LiveChange, _ edit: ListEdit<DocumentID>?) {
        for change in change.changes { apply(change) }
        if let edit { order.apply(edit) }
    }

    private mutating func apply(_ change: ListChange) {
        switch change {
        case .added(let id, let new, _): fields[id] = new
        case .changed(let id, let changed, let cleared):
            guard var document = fields.removeValue(forKey: id) else { return }
            for field in changed.fields { document[field.name] = field.value }
            for name in cleared { document[name] = nil }
            fields[id] = document
        case .moved: break
        case .removed(let id): fields[id] = nil
        }
    }

    func found(_ id: DocumentID) -> Found { Found(id: id, fields: fields[id] ?? EJSONObject()) }
}

extension [DocumentID] {
    /// Up to so many documents are moved in the list itself.
    private static let few = 16

    /// Turns the old list of ids into the new one.
    fileprivate mutating func apply(_ edit: ListEdit<DocumentID>) {
        let leaving = (edit.deleted.map { $0.index } + edit.moved.map { $0.old }).sorted()
        let coming =
            (edit.inserted.map { ($0.index, $0.id) } + edit.moved.map { ($0.new, $0.id) })
            .sorted { $0.0 < $1.0 }
        guard leaving.count + coming.count > [DocumentID].few else {
            for index in leaving.reversed() { remove(at: index) }
            for (index, id) in coming { insert(id, at: index) }
            return
        }
        var new: [DocumentID] = []
        new.reserveCapacity(count - leaving.count + coming.count)
        var (left, come) = (leaving[...], coming[...])
        for (index, id) in enumerated() {
            if left.first == index {
                left.removeFirst()
                continue
            }
            while let next = come.first, next.0 == new.count {
                new.append(next.1)
                come.removeFirst()
            }
            new.append(id)
        }
        new += come.map { $0.1 }
        self = new
    }
}
