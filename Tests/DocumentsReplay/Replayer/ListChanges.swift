package import Documents
import Wire

// The same changes as a live query reports, by a plain algorithm.

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
    for unmoved in unmoved(sources) + [new.count] {
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
private func fieldChange(from old: Found, to new: Found) -> ListChange? {
    let changes = FieldChanges(from: old.fields, to: new.fields)
    guard !changes.isEmpty else { return nil }
    return .changed(id: new.id, fields: changes.fields, cleared: changes.cleared)
}

/// The documents that count as unmoved, see `UnmovedBlocks`.
/// - Parameter sources: for each position in the new list, the document's position in the old one.
/// - Returns: positions in the new list.
private func unmoved(_ sources: [Int?]) -> [Int] {
    let known = sources.indices.filter { sources[$0] != nil }
    let blocks = sources.compactMap { $0.map { UnmovedBlocks.Block(start: $0, count: 1) } }
    return zip(known, UnmovedBlocks.find(in: blocks)).compactMap { $1 ? $0 : nil }
}
