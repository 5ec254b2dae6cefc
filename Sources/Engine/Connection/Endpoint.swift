import Session
import Synchronization
package import Wire

/// The handlers of an endpoint; at first there are none.
package protocol EndpointHandlers: Sendable {
    init()
    /// Whether a handler takes every message, so that none waits in an inbox.
    var takeMessages: Bool { get }
}

extension EndpointHandlers {
    package var takeMessages: Bool { false }
}

/// The half of an object that any thread may call: its options, its handlers, and whether anything
/// may be delivered. What the object does on its loop's thread is the subclass's business.
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`).
package class Endpoint<Configuration: Sendable, Handlers: EndpointHandlers>: @unchecked Sendable {
    package final let loop: Loop

    // Any thread.
    final let options: StagedOptions<Configuration>
    final let gate = DeliveryGate()

    // The loop's owner only. What was taken is what any thread sets, in the same memory, until one
    // of them changes it: a connection of many has it once.
    /// In a handler that may change options.
    @exclusivity(unchecked) private final var mayReconfigure = false
    @exclusivity(unchecked) private final var taken: Shared<Configuration>
    @exclusivity(unchecked) private final var takenHandlers: Shared<Handlers>

    // Any thread.
    final let sharedHandlers: SharedHandlers<Handlers>
    private final let lazyInbox = AtomicLazyReference<Inbox>()

    init(_ configuration: Configuration, on loop: Loop) {
        self.loop = loop
        taken = Shared(configuration)
        takenHandlers = Shared(Handlers())
        options = StagedOptions(taken)
        sharedHandlers = SharedHandlers(takenHandlers)
    }

    /// What it is, for messages: "long poll".
    class var kind: String { "connection" }
    /// What ends the time for options, for messages.
    class var begun: String { "the \(Self.kind) is started" }

    /// Stops delivering messages; the server is slowed down, or not asked any more. Any thread.
    /// Called on another than the loop's, one message may still come.
    package final func pause() throws(RealtimeError) { try pause(.wanted) }

    /// Delivers messages again. Any thread.
    package final func resume() throws(RealtimeError) { try resume(.wanted) }

    // MARK: For subclasses

    /// Options were changed before the start. Any thread.
    func optionsChanged(_ configuration: Configuration) {}

    func pause(_ pause: DeliveryGate.Pause) throws(RealtimeError) {}

    func resume(_ pause: DeliveryGate.Pause) throws(RealtimeError) {}

    /// Options that say the same as these, in memory that others know; the loop's owner calls it.
    func same(_ options: Shared<Configuration>) -> Shared<Configuration> { options }

    // The loop's owner calls these.

    /// As they were when it, or its last attempt, began.
    final var configuration: Configuration {
        @inline(__always) _read { yield taken.value }
    }

    final var handlers: Handlers {
        @inline(__always) _read { yield takenHandlers.value }
    }

    /// What was set since counts from now on.
    final func takeConfiguration() { taken = options.take(same).options }

    /// Says whether the server can be reached: the one that was set, or the loop's own; nil where
    /// there is none, and every host counts as reachable.
    final var chosenReachability: Reachability? {
        options.reachability ?? (try? Reachability.of(loop))
    }

    /// Takes the handlers as they are now. The old ones are released after the new ones are in
    /// place, because the destroy function of their user data may call us.
    func takeHandlers() {
        let old = exchange(&takenHandlers, with: sharedHandlers.current)
        withExtendedLifetime(old) {}
    }

    func handlersChanged() {
        takeHandlers()
        // Messages that wait for a thread must not hold up those for a handler.
        if handlers.takeMessages, inbox?.release() == true { try? resume(.full) }
    }

    /// Lets go of all handlers: nothing is reported any more. Messages that came before can still
    /// be taken.
    func dropHandlers() {
        sharedHandlers.change { $0 = Handlers() }
        takeHandlers()
        inbox?.finish(RealtimeError(.closed, "the \(Self.kind) was closed or freed"))
    }

    // MARK: The blocking form

    /// Where messages without a handler wait for threads; nil unless it was started for those. Any
    /// thread.
    final var inbox: Inbox? { lazyInbox.load() }

    final func makeInbox() {
        if inbox == nil { _ = lazyInbox.storeIfNil(Inbox(on: loop)) }
    }

    // MARK: What it is

    /// Whether it was started, or used.
    package final var wasStarted: Bool { options.isStarted }

    /// Whether it was closed, or given back, as it is with its loop.
    final var isClosed: Bool {
        gate.isClosed || loop.isClosed.load(ordering: .acquiring)
    }

    final var mayDeliver: Bool { gate.isOpen && !loop.isClosed.load(ordering: .acquiring) }

    final func checkOpen() throws(RealtimeError) {
        try loop.checkUsable()
        guard !isClosed else { throw RealtimeError(.closed, "the \(Self.kind) is closed") }
    }

    // MARK: Options and handlers

    /// Changes options: before the start, in a handler that says so, or while credentials are
    /// awaited.
    /// - Parameter once: these options are taken at the start alone.
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

    /// Whether the server can be reached is asked here; nil asks the loop's own.
    package final func setReachability(_ reachability: Reachability?) throws(RealtimeError) {
        guard reachability.map({ $0.loop === loop }) ?? true else {
            throw RealtimeError(
                .invalidArgument, "the reachability belongs to another loop than the \(Self.kind)")
        }
        try changeOptions { $0.reachability = reachability }
    }

    /// Changes handlers, at any time. The old ones may be called until the loop's thread has heard
    /// of it.
    package final func setHandlers(_ change: (inout Handlers) -> Void) throws(RealtimeError) {
        try loop.checkUsable()
        sharedHandlers.change(change)
        // The beginning takes them.
        if wasStarted { loop.perform { [self] in handlersChanged() } }
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
