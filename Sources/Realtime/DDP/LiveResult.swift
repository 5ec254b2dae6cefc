internal import Documents
import Synchronization
internal import Wire

/// The result of a live query, and what has changed in it since its reader took the last change.
/// The loop's thread changes it, any thread takes from it.
final class LiveResult: LiveReceiver {
    /// What a reader takes.
    struct Change: Sendable {
        let edit: ListEdit<DocumentID>
        /// The documents that the edit inserts and updates, as they are now.
        let inserted: [Found]
        let updated: [Found]
        let count: Int
        let isInitial: Bool
    }

    fileprivate struct State {
        /// Their order is kept only if `touch` needs it.
        var documents = LiveDocuments()
        var pending = PendingChanges<ListEdit<DocumentID>>()
        /// The reader has got the initial result.
        var hasTaken = false
        var isOver = false
    }

    private let state = Mutex(State())
    private let waiters = TaskWaiters()
    private let keepsOrder: Bool

    /// - Parameter keepsOrder: whether `touch` is used.
    init(keepsOrder: Bool = false) { self.keepsOrder = keepsOrder }

    // MARK: The loop's thread

    func report(_ change: LiveChange) {
        let edit = ListEdit(change)
        state.withLock { state in
            state.documents.apply(change, keepsOrder ? edit : nil)
            state.pending.append(edit)
        }
        waiters.resumeAll(.success(()))
    }

    /// Some documents count as updated, because what belongs to them has changed.
    func touch(_ ids: [DocumentID]) {
        let isTouched = state.withLock { state in
            let touched = Set(ids.filter { state.documents.fields[$0] != nil })
            guard !touched.isEmpty else { return false }
            var edit = ListEdit<DocumentID>()
            for (index, id) in state.documents.order.enumerated() where touched.contains(id) {
                edit.updated.append(ListEdit.Pair(old: index, new: index, id: id))
            }
            state.pending.append(edit)
            return true
        }
        if isTouched { waiters.resumeAll(.success(())) }
    }

    /// Nothing follows.
    func finish() {
        state.withLock { $0.isOver = true }
        waiters.resumeAll(.success(()))
    }

    // MARK: The reader

    /// - Returns: nil if nothing has changed.
    func take() -> Change? {
        state.withLock { state in
            guard let edit = state.pending.take() else { return nil }
            let isInitial = !state.hasTaken
            guard isInitial || !edit.isEmpty else { return nil }
            state.hasTaken = true
            let documents = state.documents
            return Change(
                edit: edit, inserted: edit.inserted.map { documents.found($0.id) },
                updated: edit.updated.map { documents.found($0.id) },
                count: documents.fields.count,
                isInitial: isInitial)
        }
    }

    /// Waits for the next change.
    /// - Returns: nil at the end, and if the task is cancelled.
    func next() async -> Change? {
        while !Task.isCancelled {
            if let change = take() { return change }
            let isWoken: Void? = try? await waiters.wait {
                state.withLock { $0.isOver || !$0.pending.isEmpty ? .success(()) : nil }
            }
            guard isWoken != nil else { return nil }
            if let change = take() { return change }
            if state.withLock({ $0.isOver }) { return nil }
        }
        return nil
    }
}

extension ListEdit<DocumentID> {
    /// The index form of a change, with the ids that its observe order names in the same order.
    init(_ change: LiveChange) {
        guard let indexes = change.indexes else { return }
        var (removed, added): ([DocumentID], [DocumentID]) = ([], [])
        var (moves, changes): ([DocumentID], [DocumentID]) = ([], [])
        for change in change.changes {
            switch change {
            case .removed(let id): removed.append(id)
            case .added(let id, _, _): added.append(id)
            case .moved(let id, _): moves.append(id)
            case .changed(let id, _, _): changes.append(id)
            }
        }
        deleted = zip(indexes.deleted, removed).map { Place(index: $0, id: $1) }
        inserted = zip(indexes.inserted, added).map { Place(index: $0, id: $1) }
        moved = zip(indexes.moved, moves).map { Pair(old: $0.old, new: $0.new, id: $1) }
        updated = zip(indexes.updated, changes).map { Pair(old: $0.old, new: $0.new, id: $1) }
    }
}
