import Session
import Synchronization
package import Wire

/// The handlers of an endpoint; at first there are none.
package protocol EndpointHandlers: Sendable {
    init()
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
    final let sharedHandlers = SharedHandlers(Handlers())
    /// What it is, for messages: "long poll".
    final let name: String

    // The loop's owner only.
    /// As they were when it, or its last attempt, began.
    @exclusivity(unchecked) final var configuration: Configuration
    @exclusivity(unchecked) final var handlers = Handlers()
    /// In a handler that may change options.
    @exclusivity(unchecked) private final var mayReconfigure = false

    /// - Parameter begun: what ends the time for options: "the long poll is started".
    init(
        _ configuration: Configuration, named name: String, until begun: String, on loop: Loop
    ) {
        self.loop = loop
        self.name = name
        self.configuration = configuration
        options = StagedOptions(configuration, until: begun)
    }

    // MARK: For subclasses

    /// Options were changed before the start. Any thread.
    func optionsChanged(_ configuration: Configuration) {}

    // The loop's owner calls these.

    /// Takes the handlers as they are now. The old ones are released after the new ones are in
    /// place, because the destroy function of their user data may call us. (An assignment would
    /// release one of them after the other, in the middle of it.)
    func takeHandlers() {
        let old = exchange(&handlers, with: sharedHandlers.current)
        withExtendedLifetime(old) {}
    }

    func handlersChanged() { takeHandlers() }

    /// Lets go of all handlers: nothing is reported any more.
    func dropHandlers() {
        let old = handlers
        sharedHandlers.change { $0 = Handlers() }
        takeHandlers()
        withExtendedLifetime(old) {}
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
        guard !isClosed else { throw RealtimeError(.closed, "the \(name) is closed") }
    }

    // MARK: Options and handlers

    /// Changes options: before the start, in a handler that says so, or while credentials are
    /// awaited.
    package final func configure(_ change: (inout Configuration) throws -> Void) throws {
        var failure: (any Error)?
        try changeOptions { options in
            failure = options.changed(by: change)
            if !options.isStarted { optionsChanged(options.configuration) }
        }
        if let failure { throw failure }
    }

    /// Changes options that are taken at the start alone.
    package final func configureOnce(_ change: (inout Configuration) throws -> Void) throws {
        try loop.checkUsable()
        var failure: (any Error)?
        try options.changeOnce { options in
            failure = options.changed(by: change)
            optionsChanged(options.configuration)
        }
        if let failure { throw failure }
    }

    final func changeOptions(
        _ change: (inout StagedOptions<Configuration>.State) throws(RealtimeError) -> Void
    ) throws(RealtimeError) {
        try loop.checkUsable()
        try options.change(isAsked: loop.isOwner && mayReconfigure, change)
    }

    /// Whether the server can be reached is asked here; nil asks the loop's own.
    package final func setReachability(_ reachability: Reachability?) throws(RealtimeError) {
        guard reachability.map({ $0.loop === loop }) ?? true else {
            throw RealtimeError(
                .invalidArgument, "the reachability belongs to another loop than the \(name)")
        }
        try changeOptions { $0.reachability = reachability }
    }

    /// Changes handlers, at any time.
    package final func setHandlers(_ change: (inout Handlers) -> Void) throws(RealtimeError) {
        try loop.checkUsable()
        sharedHandlers.change(change)
        loop.perform { [self] in handlersChanged() }
    }

    /// Runs a handler that may change options. The loop's owner only.
    final func reconfiguring<Result>(_ body: () throws -> Result) throws -> Result {
        mayReconfigure = true
        defer { mayReconfigure = false }
        return try body()
    }
}
