/// A change that can be merged with the next one.
package protocol MergeableChange: Sendable {
    /// How much there is to remember.
    var size: Int { get }

    /// Changes that follow each other, at least one, as one.
    static func merged(_ changes: ArraySlice<Self>) -> Self
}

/// Changes that a reader has not taken yet. It takes all of them as one, so none is lost however
/// slow it is. The memory is limited without losing any: when more have gathered than are worth
/// keeping apart, they are merged, and a merged change is never larger than what it changes.
package struct PendingChanges<Change: MergeableChange>: Sendable {
    private var changes: [Change] = []
    private var size = 0
    private var limit = PendingChanges.smallLimit

    /// As many parts of changes are never merged before they are taken.
    private static var smallLimit: Int { 1_024 }

    package var isEmpty: Bool { changes.isEmpty }
    /// How many changes are kept apart.
    var count: Int { changes.count }

    package init() {}

    package mutating func append(_ change: Change) {
        changes.append(change)
        // A change without parts counts, too: it takes memory.
        size += 1 + change.size
        guard size > limit else { return }
        let merged = Change.merged(changes[...])
        changes = [merged]
        size = 1 + merged.size
        // Merging again before as much has come would cost more than it saves.
        limit = max(PendingChanges.smallLimit, 4 * size)
    }

    /// - Returns: nil if there is none.
    package mutating func take() -> Change? {
        guard !changes.isEmpty else { return nil }
        defer { self = PendingChanges() }
        return Change.merged(changes[...])
    }
}
