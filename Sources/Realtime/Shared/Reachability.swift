internal import Engine
import Synchronization
public import Wire

/// A reachability monitor: it says whether there is a network. Objects that repeat failed attempts
/// consult it before each attempt, also the first: while their server cannot be reached, they make
/// and count none, report the wait once, and continue within a second once the network returns.
/// Other objects make their only attempt in any case.
///
///     let reachability = try Reachability()
///     for await isOnline in reachability.changes { print(isOnline ? "online" : "offline") }
///
/// All members may be used on any thread.
public final class Reachability: Sendable {
    /// How reachability is decided.
    public enum Mode: Sendable {
        /// By the links, addresses and routes that the kernel reports. A peer counts as reachable
        /// if one of these holds: it is this machine or a Unix socket; an interface other than the
        /// loopback is up and running and has a default route; such an interface has a route to its
        /// address; or, for a peer known by name, such an interface has any route that is not
        /// link-local (for a name in .local, any route). In doubt the peer is reachable: a wrong
        /// yes costs one attempt, a wrong no would never connect. With a proxy, the proxy is the
        /// peer. If the system does not show its network, this works as `always`.
        case auto
        /// By `setOnline`; initially online.
        case manual
        /// All peers count as reachable.
        case always
    }

    let engine: Engine.Reachability
    /// Retained, because a loop ends, with everything on it, when its last reference is released.
    private let loop: Loop
    private let listeners: Listeners

    /// - Parameter executor: where the handler runs; one that is isolated to an actor runs there.
    /// - Throws: `.closed` if the loop has ended.
    public init(
        _ mode: Mode = .auto, on loop: Loop = .shared, executor: HandlerExecutor = .main
    ) throws(RealtimeError) {
        engine = try Engine.Reachability(on: loop.engine, mode: mode.engine)
        self.loop = loop
        let listeners = Listeners(
            engine.isOnline, HandlerQueues(on: executor, loop: loop.engine))
        self.listeners = listeners
        try engine.setOnChange { listeners.notify($0) }
    }

    deinit {
        engine.abandon()
        listeners.finish()
    }

    /// Whether a host known by name counts as reachable.
    public var isOnline: Bool { engine.isOnline }

    public func setMode(_ mode: Mode) throws(RealtimeError) { try engine.setMode(mode.engine) }

    /// Sets whether there is a network, for `.manual`. In another mode the value is kept for a
    /// later change to manual mode.
    public func setOnline(_ isOnline: Bool) throws(RealtimeError) {
        try engine.setOnline(isOnline)
    }

    /// The changes of `isOnline` from now on; only the latest if they come faster than they are
    /// read. Ends with this object.
    public var changes: Changes { Changes(listeners.hub) }

    /// Calls `handler` with each change of `isOnline`; nil removes it. It runs on the main actor,
    /// on the actor to which it is isolated, or where the executor of this object says.
    public func onChange(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (_ isOnline: Bool) -> Void)?
    ) {
        listeners.setHandler(Handler(handler))
    }

    /// The changes of `isOnline`. Any number of tasks iterate, each with an iteration of its own.
    public struct Changes: AsyncSequence, Sendable {
        public typealias Element = Bool
        public typealias Failure = Never

        private let hub: StateHub<Bool>
        /// The place of the first change.
        private let position: Int

        fileprivate init(_ hub: StateHub<Bool>) {
            self.hub = hub
            position = hub.position + 1
        }

        public func makeAsyncIterator() -> AsyncIterator {
            AsyncIterator(hub: hub, position: position)
        }

        public struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate let hub: StateHub<Bool>
            fileprivate var position: Int

            /// Waits for the next change; nil at the end, and if the task is cancelled.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws(Never) -> Bool? { await hub.next(&position, latest: true) }

            public mutating func next() async -> Bool? {
                await hub.next(&position, latest: true)
            }
        }
    }
}

extension Reachability.Mode {
    fileprivate var engine: Engine.Reachability.Mode {
        switch self {
        case .auto: .auto
        case .manual: .manual
        case .always: .always
        }
    }
}

/// The handler of changes, and the changes for iterations.
private final class Listeners: Sendable {
    let hub: StateHub<Bool>
    private let handler = Mutex<Handler<@Sendable (Bool) -> Void>?>(nil)
    private let queues: HandlerQueues

    init(_ isOnline: Bool, _ queues: HandlerQueues) {
        hub = StateHub(isOnline)
        self.queues = queues
    }

    func setHandler(_ handler: Handler<@Sendable (Bool) -> Void>?) {
        // The old handler's captures are released outside the lock.
        let old = self.handler.withLock { exchange(&$0, with: handler) }
        withExtendedLifetime(old) {}
    }

    func notify(_ isOnline: Bool) {
        hub.update { isOnline }
        guard let handler = handler.withLock({ $0 }) else { return }
        _ = queues.run(on: handler.isolation) { handler.call(isOnline) }
    }

    func finish() {
        queues.close()
        hub.finish(nil)
    }
}
