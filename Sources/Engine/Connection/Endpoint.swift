import Session
import Synchronization
package import Wire

/// The handlers of an endpoint; none of them are set at first.
package protocol EndpointHandlers: Sendable {
    init()
    /// True if a handler takes every message, so that none waits in an inbox.
    var takeMessages: Bool { get }
}

extension EndpointHandlers {
    package var takeMessages: Bool { false }
}

/// The part of an object that any thread may call: its options, its handlers, and whether it may
/// deliver. The subclass does the object's work on the loop's thread.
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`).
package class Endpoint<Configuration: Sendable, Handlers: EndpointHandlers>: @unchecked Sendable {
    package final let loop: Loop

    // Any thread.
    final let options: StagedOptions<Configuration>
    final let gate = DeliveryGate()

    // The loop's owner only. `taken` and `takenHandlers` share memory with what other threads set,
    // until either changes. So a connection whose settings never change holds them once.
    /// True inside a handler that may change options.
    @exclusivity(unchecked) private final var mayReconfigure = false
    /// The handler that was called before an attempt has not decided yet.
    @exclusivity(unchecked) final var isDeferred = false
    /// True inside that handler.
    @exclusivity(unchecked) final var mayDeferAttempt = false
    /// The next call that would wait ends.
    @exclusivity(unchecked) final var isInterrupted = false
    @exclusivity(unchecked) private final var taken: Shared<Configuration>
    @exclusivity(unchecked) private final var takenHandlers: Shared<Handlers>
    /// The blocking calls that wait until the object is open.
    @exclusivity(unchecked) final var openings: [Answer<RealtimeError?>] = []

    // Any thread.
    final let sharedHandlers: SharedHandlers<Handlers>
    private final let lazyInbox = AtomicLazyReference<Inbox>()
    private final let stateObserver = AtomicLazyReference<StateObserver>()

    init(_ configuration: Configuration, on loop: Loop) {
        self.loop = loop
        taken = Shared(configuration)
        takenHandlers = Shared(Handlers())
        options = StagedOptions(taken)
        sharedHandlers = SharedHandlers(takenHandlers)
    }

    /// The name of the object's kind for messages, such as "long poll".
    class var kind: String { "connection" }
    /// The event after which options can no longer be set, for messages.
    class var begun: String { "the \(Self.kind) is started" }

    /// Stops delivering messages. The server is slowed down, or not polled any more. Any thread;
    /// when called outside the loop's thread, one more message may be delivered.
    package final func pause() throws(RealtimeError) { try pause(.wanted) }

    /// Continues to deliver messages. Any thread.
    package final func resume() throws(RealtimeError) { try resume(.wanted) }

    /// Stops and continues delivery for another reason: too many delivered messages wait for the
    /// program. Messages are delivered again when neither reason is left. Any thread.
    package final func pauseForRoom() { try? pause(.full) }
    package final func resumeWithRoom() { try? resume(.full) }

    // MARK: For subclasses

    /// Options were changed before the start. Any thread.
    func optionsChanged(_ configuration: Configuration) {}

    /// Handlers were set after the start. Any thread.
    func handlersSet() {}

    func pause(_ pause: DeliveryGate.Pause) throws(RealtimeError) {}

    func resume(_ pause: DeliveryGate.Pause) throws(RealtimeError) {}

    /// Whether the object has ended for good. Any thread.
    var hasEnded: Bool { isClosed }

    /// Whether the object is open. Any thread.
    var isEstablished: Bool { false }

    /// Whether the object waits for credentials. The loop's owner only, as the next ones.
    var isAuthorizing: Bool { false }

    /// The options contain fresh credentials: repeats the request.
    func authorize() {}

    /// There are no credentials: ends the object.
    /// - Parameter cause: why there are none; nil to report the server's refusal.
    func refuseCredentials(because cause: RealtimeError?) {}

    /// Ends the object with this error.
    func giveUp(_ error: RealtimeError) {}

    /// Makes the attempt that was deferred.
    func continueAttempt() {}

    /// Ends the object, because its caller declines the attempt that was deferred.
    /// - Parameter cause: the error to end with; nil for none.
    func declineAttempt(because cause: RealtimeError?) {}

    /// Returns shared options that are equal to these, if there are any. The loop's owner only.
    func same(_ options: Shared<Configuration>) -> Shared<Configuration> { options }

    // The loop's owner calls these.

    /// The options as of the start, or of the last attempt.
    final var configuration: Configuration {
        @inline(__always) _read { yield taken.value }
    }

    final var handlers: Handlers {
        @inline(__always) _read { yield takenHandlers.value }
    }

    /// Makes the options that were set since take effect.
    final func takeConfiguration() { taken = options.take(same).options }

    /// Tells whether the server can be reached: the instance that was set, or the loop's own. nil
    /// if there is none; then every host counts as reachable.
    final var chosenReachability: Reachability? {
        options.reachability ?? (try? Reachability.of(loop))
    }

    /// Takes over the current handlers. The old ones are released after the new ones are set,
    /// because the destroy function of their user data may call us.
    func takeHandlers() {
        let old = exchange(&takenHandlers, with: sharedHandlers.current)
        withExtendedLifetime(old) {}
    }

    func handlersChanged() {
        takeHandlers()
        // Messages that wait for a blocked thread must not delay those for a handler.
        if handlers.takeMessages, inbox?.release() == true { try? resume(.full) }
    }

    /// Takes over handlers that were set since. For an event that another thread may have caused
    /// after it had set them: the loop hears of them only between its jobs.
    final func takeNewHandlers() {
        if sharedHandlers.current !== takenHandlers { handlersChanged() }
    }

    /// Releases all handlers, so nothing more is reported. Messages received earlier can still be
    /// taken from the inbox.
    func dropHandlers() {
        sharedHandlers.change { $0 = Handlers() }
        takeHandlers()
        let end = RealtimeError(.closed, "the \(Self.kind) was closed or freed")
        inbox?.finish(end)
        settleOpenings(end)
    }

    // MARK: The blocking API

    /// The queue of messages for threads that block; nil unless a blocking call started the object.
    /// Any thread.
    final var inbox: Inbox? { lazyInbox.load() }

    final func makeInbox() {
        if inbox == nil { _ = lazyInbox.storeIfNil(Inbox(on: loop)) }
    }

    /// Ends the blocking calls of other threads with `.cancelled`. If there are none, the next one
    /// that would wait ends at once. Any thread.
    package func interrupt() throws(RealtimeError) {
        try loop.checkNotForked()
        let hasInterrupted = interruptTakes()
        loop.perform { [self] in interruptOpenings(hasInterrupted) }
    }

    // MARK: State

    /// Calls a function after each change of the state, on the thread that has changed it. Only the
    /// first one counts.
    package final func observeState(_ changed: @escaping @Sendable () -> Void) {
        _ = stateObserver.storeIfNil(StateObserver(changed))
    }

    /// To be called after each change of the state. Any thread.
    final func stateChanged() { stateObserver.load()?.changed() }

    /// Whether the object was started or used.
    package final var wasStarted: Bool { options.isStarted }

    /// Whether the object was closed or freed, or its loop was.
    final var isClosed: Bool {
        gate.isClosed || loop.isClosed.load(ordering: .acquiring)
    }

    final var mayDeliver: Bool { gate.isOpen && !loop.isClosed.load(ordering: .acquiring) }

    final func checkOpen() throws(RealtimeError) {
        try loop.checkUsable()
        guard !isClosed else { throw RealtimeError(.closed, "the \(Self.kind) is closed") }
    }

    // MARK: Options and handlers

    /// Changes options: before the start, in a handler that allows it, or while credentials are
    /// awaited.
    /// - Parameter once: for options that are only read at the start.
    package final func configure(
        once: Bool = false, _ change: (inout Configuration) throws(RealtimeError) -> Void
    ) throws(RealtimeError) {
        try changeOptions(once: once) { options throws(RealtimeError) in
            defer { if !options.isStarted { optionsChanged(options.configuration) } }
            try options.change(change)
        }
    }

    final func changeOptions(
        once: Bool = false,
        _ change: (inout StagedOptions<Configuration>.State) throws(RealtimeError) -> Void
    ) throws(RealtimeError) {
        try loop.checkUsable()
        if once { return try options.changeOnce(before: Self.begun, change) }
        try options.change(
            before: Self.begun, isAsked: loop.isOwner && mayReconfigure, change)
    }

    /// Sets the reachability to ask; nil for the loop's own.
    package final func setReachability(_ reachability: Reachability?) throws(RealtimeError) {
        guard reachability.map({ $0.loop === loop }) ?? true else {
            throw RealtimeError(
                .invalidArgument, "the reachability and the \(Self.kind) belong to different loops")
        }
        try changeOptions { $0.reachability = reachability }
    }

    /// Changes handlers, at any time. The old ones may be called until the loop's thread has taken
    /// over the new ones.
    package final func setHandlers(_ change: (inout Handlers) -> Void) throws(RealtimeError) {
        try loop.checkUsable()
        sharedHandlers.change(change)
        // Before the start there is nothing to notify: the start takes them over.
        guard wasStarted else { return }
        handlersSet()
        loop.perform { [self] in handlersChanged() }
    }

    /// Runs a handler that may change options. The loop's owner only.
    final func reconfiguring<Result>(
        _ body: () throws(RealtimeError) -> Result
    ) throws(RealtimeError) -> Result {
        mayReconfigure = true
        defer { mayReconfigure = false }
        return try body()
    }
}

private final class StateObserver: Sendable {
    let changed: @Sendable () -> Void

    init(_ changed: @escaping @Sendable () -> Void) { self.changed = changed }
}
