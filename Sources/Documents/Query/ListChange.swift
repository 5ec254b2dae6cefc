package import Wire

/// A step from one list of documents to another: the observe order of a live query (ddp.md §17).
package enum ListChange: Sendable, Equatable {
    /// - `before`: the id of the document that follows; nil at the end.
    case added(id: DocumentID, fields: EJSONObject, before: DocumentID?)
    /// - `fields`: the new and the changed fields.
    /// - `cleared`: the names of the fields that are gone.
    case changed(id: DocumentID, fields: EJSONObject, cleared: [String])
    case moved(id: DocumentID, before: DocumentID?)
    case removed(id: DocumentID)
}

/// The steps that turn one list into the other, in the order in which Meteor reports them.
/// - Parameters: lists in which no id occurs twice.
package func listChanges(from old: [Found], to new: [Found]) -> [ListChange] {
    var positions = Dictionary<DocumentID, Int>(minimumCapacity: old.count)
    for (position, document) in old.enumerated() { positions[document.id] = position }
    let sources = new.map { positions[$0.id] }

    var changes: [ListChange] = []
    var isKept = [Bool](repeating: false, count: old.count)
    for case let source? in sources { isKept[source] = true }
    for (document, isKept) in zip(old, isKept) where !isKept {
        changes.append(.removed(id: document.id))
    }

    var start = 0
    for unmoved in unmovedPositions(sources) + [new.count] {
        let before = unmoved < new.count ? new[unmoved].id : nil
        for position in start..<unmoved {
            let document = new[position]
            guard let source = sources[position] else {
                changes.append(
                    .added(id: document.id, fields: document.fields, before: before))
                continue
            }
            if let change = fieldChange(from: old[source], to: document) {
                changes.append(change)
            }
            changes.append(.moved(id: document.id, before: before))
        }
        if unmoved < new.count, let source = sources[unmoved],
            let change = fieldChange(from: old[source], to: new[unmoved])
        {
            changes.append(change)
        }
        start = unmoved + 1
    }
    return changes
}

/// nil if the fields are equal.
package func fieldChange(from old: Found, to new: Found) -> ListChange? {
    var fields = EJSONObject()
    for field in new.fields.fields where old.fields[field.name] != field.value {
        fields.append(field.name, field.value)
    }
    var cleared: [String] = []
    for field in old.fields.fields where new.fields[field.name] == nil {
        cleared.append(field.name)
    }
    guard !fields.isEmpty || !cleared.isEmpty else { return nil }
    return .changed(id: new.id, fields: fields, cleared: cleared)
}

/// The longest increasing subsequence of old positions. Of several longest ones it is the one that
/// Meteor finds, because that decides which documents count as moved.
/// - Parameter sources: for each position in the new list, the document's position in the old one.
/// - Returns: positions in the new list.
package func unmovedPositions(_ sources: [Int?]) -> [Int] {
    /// By length - 1: the position in the new list at which the best run of this length ends.
    var ends: [Int] = []
    /// For each position in the new list, the one before it in its run.
    var previous = [Int?](repeating: nil, count: sources.count)
    for (position, source) in sources.enumerated() {
        guard let source else { continue }
        // The old positions of the ends increase with the length.
        var (low, high) = (0, ends.count)
        while low < high {
            let middle = (low + high) / 2
            if let end = sources[ends[middle]], end < source {
                low = middle + 1
            } else {
                high = middle
            }
        }
        if low > 0 { previous[position] = ends[low - 1] }
        if low == ends.count { ends.append(position) } else { ends[low] = position }
    }
    var positions: [Int] = []
    var position = ends.last
    while let current = position {
        positions.append(current)
        position = previous[current]
    }
    return positions.reversed()
}
