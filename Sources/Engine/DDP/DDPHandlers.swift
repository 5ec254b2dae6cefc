package import Documents
package import Session
package import Wire

/// The handlers of a Meteor client. They are called on its loop's thread, one at a time.
///
/// Unchecked because handlers may be set on any thread and are called on the loop's. Callers of the
/// C interface must ensure that theirs allow that; those of Swift are Sendable.
package struct DDPHandlers: EndpointHandlers, @unchecked Sendable {
    package var status: ((DDPStatusChange) -> Void)?
    /// A connection is open. Calls that it makes are sent before all that waited for a connection,
    /// after the login with a token.
    package var open: (() -> Void)?
    package var account: ((DDPAccountEvent) -> Void)?
    /// Documents have changed. Between its parts, the handler asks whether it is still wanted: its
    /// caller may have removed it, or closed the client.
    package var changed: ((DDPChangePiece, _ isWanted: () -> Bool) -> Void)? {
        didSet { changedCount &+= 1 }
    }
    /// How often `changed` was set.
    private(set) var changedCount = 0
    /// The documents of an earlier run are replaced by those of the server.
    package var current: (() -> Void)?
    /// A live query has ended by itself.
    package var queryEnded: ((EndedQuery) -> Void)?
    /// The server did not understand a message, which is a JSON text if the server repeats it.
    package var refused: ((_ reason: String, _ offending: [UInt8]?) -> Void)?
    /// A line for what is out of the ordinary, such as a message that is ignored.
    package var debug: ((String) -> Void)?
    /// Returns the token of an earlier login from where `account` has stored it; nil for none. Also
    /// called before each new connection, because another process may have stored a newer one; at
    /// first on the thread that uses the client first. It must not use the client.
    package var loadToken: (() -> DDPLoginToken?)?

    package init() {}
}

/// Changes that were made together, or a part of them.
package struct DDPChangePiece {
    package let changes: ArraySlice<DocumentChange>
    package let isFirst: Bool
    package let isLast: Bool
}

/// What a call reports; see `DDPHandlers` for its threads.
package struct DDPCallHandlers: @unchecked Sendable {
    /// The result has arrived; the documents that the call wrote may follow.
    package var result: ((Result<EJSON, DDPError>) -> Void)?
    /// The call is done, and the documents that it wrote are there. Called once.
    package var completed: ((Result<EJSON, DDPError>) -> Void)?

    package init(
        result: ((Result<EJSON, DDPError>) -> Void)? = nil,
        completed: ((Result<EJSON, DDPError>) -> Void)? = nil
    ) {
        self.result = result
        self.completed = completed
    }
}

/// What a subscription reports; see `DDPHandlers` for its threads.
package struct DDPSubscriptionHandlers: @unchecked Sendable {
    /// The initial documents are there. Called once.
    package var ready: (() -> Void)?
    /// The server has ended the subscription; the error is nil if it gave none.
    package var stopped: ((DDPError?) -> Void)?

    package init(ready: (() -> Void)? = nil, stopped: ((DDPError?) -> Void)? = nil) {
        self.ready = ready
        self.stopped = stopped
    }
}

/// Called with each change of a live query's result; see `DDPHandlers` for its threads, and for
/// `isWanted`.
package typealias DDPLiveHandler = (LiveChange, _ isWanted: () -> Bool) -> Void

/// Called on the loop's thread when a live query has ended by itself.
package typealias DDPQueryEndHandler = (RealtimeError) -> Void

/// Called with what each transaction has changed; see `DDPObjects`.
typealias DDPChangeObserver = @Sendable ([DocumentChange]?) -> Void

/// Called with each message about a document of a collection that is a stream; see `DDPHandlers`
/// for its threads.
package typealias DDPStreamHandler = (ListChange) -> Void

/// Called once: all subscriptions of a loader are ready, or have failed with this first error.
package typealias DDPLoadHandler = (DDPError?) -> Void

/// Called on the loop's thread with each change of a live query's result; the first one is the
/// present result. See `DDPHandlers` for `isWanted`.
package typealias DDPStartedLiveHandler = (
    _ change: LiveChange, _ isInitial: Bool, _ isWanted: () -> Bool
) -> Void

/// The same for changes that may come in pieces.
package typealias DDPLivePieceHandler = (
    _ piece: LiveChange, _ isInitial: Bool, _ isLast: Bool, _ isWanted: () -> Bool
) -> Void

/// Called on the loop's thread with the changes of a live query's result by positions.
package typealias DDPIndexHandler = (
    _ query: LiveQueryID, _ changes: IndexChanges, _ isInitial: Bool
) -> Void

/// What a live query reports to.
struct DDPLiveObserver {
    /// nil if the present result is not reported.
    var start: DDPLiveStart?
    /// Whether changes may come in pieces.
    var takesPieces = false
    let changed: (LiveChange, _ isLast: Bool, _ isWanted: () -> Bool) -> Void
    let ended: DDPQueryEndHandler
}

/// The present result of a live query, until it is reported. Unchecked because after its creation
/// it is only used on the loop's thread.
final class DDPLiveStart: @unchecked Sendable {
    var beginning: LiveChange?
    let changed: DDPLivePieceHandler
    /// nil if changes are reported as they come.
    let indexes: DDPIndexFeed?

    init(
        _ beginning: LiveChange, _ changed: @escaping DDPLivePieceHandler,
        _ indexes: DDPIndexFeed?
    ) {
        self.beginning = beginning
        self.changed = changed
        self.indexes = indexes
    }
}

/// The changes by positions that a live query has not reported yet. On the loop's thread.
final class DDPIndexFeed {
    private var feed = LiveFeed()
    private var query: LiveQueryID?
    private let changed: DDPIndexHandler
    /// It will be asked to report.
    var isNoted = false

    init(_ changed: @escaping DDPIndexHandler) { self.changed = changed }

    func add(_ change: LiveChange) {
        query = change.query
        feed.append(change)
    }

    /// - Parameter isWanted: whether the query has not ended.
    func report(_ isWanted: (LiveQueryID) -> Bool) {
        isNoted = false
        guard let query, isWanted(query), let taken = feed.takeIndexes() else { return }
        changed(query, taken.changes, taken.isInitial)
    }
}
