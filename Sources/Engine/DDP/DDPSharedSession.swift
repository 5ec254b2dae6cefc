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

    init(_ session: DDPSession) { self.session = session }

    /// This thread holds the lock: it runs a stub.
    var isOwned: Bool { owner.load(ordering: .relaxed) == UInt(shim_thread_self()) }

    /// Calls `body` with the lock. A stub, which has it already, may do so too.
    func locked<Result: Sendable, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        if isOwned { return try body() }
        return try lock.withLock { _ throws(Failure) in
            owner.store(UInt(shim_thread_self()), ordering: .relaxed)
            defer { owner.store(0, ordering: .relaxed) }
            return try body()
        }
    }

    /// Forgets documents and handlers. The handlers are released without the lock, because they may
    /// hold user data.
    func removeAll(_ empty: DDPSession) {
        let old = locked {
            let old = DDPReleased(
                calls: calls, subscriptions: subscriptions, loaders: loaders, queries: queries)
            (calls, subscriptions, loaders, queries) = ([:], [:], [:], [:])
            session = empty
            return old
        }
        withExtendedLifetime(old) {}
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
