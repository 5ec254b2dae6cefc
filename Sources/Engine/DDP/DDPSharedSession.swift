import CShims
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
    @exclusivity(unchecked) var calls: [DDPSession.CallID: DDPCallHandlers] = [:]
    @exclusivity(unchecked)
    var subscriptions: [DDPSession.SubscriptionHandle: DDPSubscriptionHandlers] = [:]
    @exclusivity(unchecked) var loaders: [DDPSession.LoaderID: DDPLoadHandler] = [:]
    @exclusivity(unchecked) var queries: [Int: DDPLiveObserver] = [:]

    /// The session that replaces this one, with all handlers, when the lock is released.
    private var replacement: DDPSession?

    init(_ session: DDPSession) { self.session = session }

    /// This thread holds the lock: it runs a stub.
    var isOwned: Bool { owner.load(ordering: .relaxed) == UInt(shim_thread_self()) }

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
        locked { replacement = empty }
    }

    /// What `removeAll` has left to be released without the lock, because it may hold user data.
    private func takeReleased() -> DDPReleased? {
        guard let empty = replacement else { return nil }
        let old = DDPReleased(
            calls: calls, subscriptions: subscriptions, loaders: loaders, queries: queries)
        (calls, subscriptions, loaders, queries) = ([:], [:], [:], [:])
        (session, replacement) = (empty, nil)
        return old
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
    let loaders: [DDPSession.LoaderID: DDPLoadHandler]
    let queries: [Int: DDPLiveObserver]
}
