internal import Documents
import Synchronization
internal import Wire

/// What a reader of a live query has not taken yet. The loop's thread adds to it, any thread takes
/// from it.
final class LiveResult: LiveReceiver {
    private struct State {
        var feed = LiveFeed()
        var isOver = false
    }

    private let state = Mutex(State())
    private let waiters = TaskWaiters()

    // MARK: The loop's thread

    func report(_ change: LiveChange) {
        state.withLock { $0.feed.append(change) }
        waiters.resumeAll(.success(()))
    }

    /// Some documents count as updated, because what belongs to them has changed.
    func touch(_ ids: [DocumentID]) {
        let isTouched = state.withLock { $0.feed.touch(ids) }
        if isTouched { waiters.resumeAll(.success(())) }
    }

    /// Nothing follows.
    func finish() {
        state.withLock { $0.isOver = true }
        waiters.resumeAll(.success(()))
    }

    // MARK: The reader

    /// - Returns: nil if nothing has changed.
    func take() -> LiveBatch? { state.withLock { $0.feed.take() } }

    /// Waits for the next change.
    /// - Returns: nil at the end, and if the task is cancelled.
    func next() async -> LiveBatch? {
        while !Task.isCancelled {
            if let batch = take() { return batch }
            let isWoken: Void? = try? await waiters.wait {
                state.withLock { $0.isOver || $0.feed.isFilled ? .success(()) : nil }
            }
            guard isWoken != nil else { return nil }
            if let batch = take() { return batch }
            if state.withLock({ $0.isOver }) { return nil }
        }
        return nil
    }
}

extension LiveStep {
    /// The document as it is now.
    var found: Found { Found(id: id, fields: new ?? [:]) }
}
