import CShims
import Documents
package import Session
import Synchronization
import Wire

/// The machine of a Meteor client, and the handlers of its calls, subscriptions and live queries.
/// Any thread may use them, one at a time: readers must see the documents as they are, and a stub
/// writes them before its call returns.
///
/// Unchecked because all fields but the first two belong to the thread that holds the lock.
package final class DDPSharedSession: ActionMachine, @unchecked Sendable {
    private let lock = Mutex(false)
    /// The thread that holds the lock; 0 for none.
    private let owner = Atomic<UInt>(0)

    @exclusivity(unchecked) var session: DDPSession
    /// The options are taken, and the session was made from them.
    var isPrepared = false
    var entropy = DDPEntropy()
    /// Where the documents are kept for the next run; nil if nowhere.
    var documentFile: DDPDocumentFile?
    /// The number of the documents that were kept last.
    var lastKept = 0
    @exclusivity(unchecked) var calls: [DDPSession.CallID: DDPCallHandlers] = [:]
    @exclusivity(unchecked)
    var subscriptions: [DDPSession.SubscriptionHandle: DDPSubscriptionHandlers] = [:]
    @exclusivity(unchecked) var loaders: [DDPSession.LoaderID: [DDPLoadHandler]] = [:]
    @exclusivity(unchecked) var queries: [Int: DDPLiveObserver] = [:]
    /// By collection.
    @exclusivity(unchecked) var streams: [ByteText: DDPStreamHandler] = [:]
    /// In the order in which they were added; nil after the end.
    @exclusivity(unchecked)
    private var changeObservers: [(number: UInt64, observe: DDPChangeObserver)]? = []
    private var lastChangeObserver: UInt64 = 0
    /// The blocking calls that wait for a connection, by number.
    @exclusivity(unchecked) var connects: [UInt64: Answer<RealtimeError?>] = [:]
    /// The next call that would wait for a connection ends.
    @exclusivity(unchecked) var isInterrupted = false
    var lastConnect: UInt64 = 0
    /// The response that opened the last connection, and that connection; nil before the first.
    var opened: Opened?
    /// Why there is no connection; nil if there is one, or there never was.
    var lastLoss: RealtimeError?
    /// Why the file for the token does not have the present one; nil if it has.
    var tokenFault: RealtimeError?

    /// The thread that runs the handler for a new connection; 0 for none.
    var openingThread: UInt = 0

    /// The session that replaces this one, with all handlers, when the lock is released.
    private var replacement: DDPSession?
    /// Whether there is one. To ask the optional would copy the session.
    private var isReplaced = false
    /// The client is closed. Handlers that a call has added since are released too.
    private var isOver = false

    init(_ session: DDPSession) { self.session = session }

    /// This thread holds the lock: it runs a stub.
    var isOwned: Bool { owner.load(ordering: .relaxed) == UInt(shim_thread_self()) }

    /// Prepares the session for what the application passes to it on this thread.
    func takeContext() {
        session.wallClock = Loop.wallClockMilliseconds()
        session.callsGoFirst = openingThread == UInt(shim_thread_self())
    }

    /// Calls `body` with the lock. A stub, which has it already, may do so too.
    func locked<Result: Sendable, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        if isOwned { return try body() }
        var released: DDPReleased?
        defer { withExtendedLifetime(released) {} }
        return try lock.withLock { _ throws(Failure) in
            owner.store(UInt(shim_thread_self()), ordering: .relaxed)
            defer {
                released = takeReleased()
                owner.store(0, ordering: .relaxed)
            }
            return try body()
        }
    }

    /// Forgets documents and handlers; in a stub, once the call that runs it has ended.
    func removeAll(_ empty: DDPSession) {
        locked { (replacement, isReplaced) = (empty, true) }
    }

    /// What is to be released without the lock after `removeAll`, because it may hold user data.
    private func takeReleased() -> DDPReleased? {
        guard isReplaced || isOver else { return nil }
        if let empty = replacement { (session, replacement, isOver) = (empty, nil, true) }
        isReplaced = false
        let old = DDPReleased(
            calls: calls, subscriptions: subscriptions, loaders: loaders, queries: queries,
            streams: streams, connects: connects)
        (calls, subscriptions, loaders, queries) = ([:], [:], [:], [:])
        (streams, connects) = ([:], [:])
        return old
    }

    // MARK: Blocking calls that wait for a connection

    /// Ends the waits for a connection, if the new status does. The lock is held.
    func report(_ change: DDPStatusChange) {
        if change.status == .connected {
            lastLoss = nil
        } else if change.status == .failed {
            lastLoss = change.error ?? RealtimeError(.protocolViolation, change.reason)
        } else if let error = change.error {
            lastLoss = error
        }
        for answer in connects.values { report(change.status, to: answer) }
    }

    func report(_ status: DDPStatus, to answer: Answer<RealtimeError?>) {
        switch status {
        case .connected: answer.set(nil)
        case .failed: answer.set(lastLoss ?? RealtimeError(.closed, "the client has failed"))
        case .offline:
            guard !session.isConnectionWanted else { return }
            answer.set(RealtimeError(.closed, "the client was disconnected"))
        case .connecting, .waiting: break
        }
    }

    // MARK: Observers of all changes

    /// - Returns: its number, and whether the client is closed already.
    func addChangeObserver(_ observer: @escaping DDPChangeObserver) -> (UInt64, isOver: Bool) {
        locked {
            lastChangeObserver += 1
            changeObservers?.append((lastChangeObserver, observer))
            return (lastChangeObserver, changeObservers == nil)
        }
    }

    func removeChangeObserver(_ number: UInt64) {
        let old = locked {
            let index = changeObservers?.firstIndex { $0.number == number }
            return index.map { changeObservers?.remove(at: $0) }
        }
        withExtendedLifetime(old) {}
    }

    /// - Parameter changes: nil for the end; nothing follows.
    func tellChangeObservers(_ changes: [DocumentChange]?) {
        let observers = locked {
            let observers = changeObservers ?? []
            if changes == nil { changeObservers = nil }
            return observers
        }
        for observer in observers { observer.observe(changes) }
    }

    // MARK: ActionMachine

    package var wakeUp: Instant? { locked { session.wakeUp } }

    package func timeReached(_ now: Instant) {
        locked {
            session.wallClock = Loop.wallClockMilliseconds()
            session.timeReached(now)
        }
    }

    func nextAction() -> DDPSession.Action? { locked { session.nextAction() } }
}

/// Handlers that are to be released. Unchecked because nobody calls them any more.
private struct DDPReleased: @unchecked Sendable {
    let calls: [DDPSession.CallID: DDPCallHandlers]
    let subscriptions: [DDPSession.SubscriptionHandle: DDPSubscriptionHandlers]
    let loaders: [DDPSession.LoaderID: [DDPLoadHandler]]
    let queries: [Int: DDPLiveObserver]
    let streams: [ByteText: DDPStreamHandler]
    let connects: [UInt64: Answer<RealtimeError?>]
}
