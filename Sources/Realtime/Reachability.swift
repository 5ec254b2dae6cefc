internal import Engine
import Synchronization
public import Wire

/// A reachability monitor: it says whether there is a network. Objects that reconnect or retry
/// consult it before each attempt: while it is offline, they make and count no attempts.
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
        _ mode: Mode = .auto, on loop: Loop = .shared, executor: Spreadbot.Executor = .main
    ) throws(RealtimeError) {
        engine = try Engine.Reachability(on: loop.engine, mode: mode.engine)
        self.loop = loop
        let listeners = Listeners(HandlerQueues(on: executor, loop: loop.engine))
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
    public var changes: AsyncStream<Bool> { listeners.stream() }

    /// Calls `handler` with each change of `isOnline`; nil removes it. It runs on the main actor,
    /// on the actor to which it is isolated, or where the executor of this object says.
    public func onChange(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (_ isOnline: Bool) -> Void)?
    ) {
        listeners.setHandler(Handler(handler))
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

/// The listeners to changes.
private final class Listeners: Sendable {
    private struct Contents {
        var handler: Handler<@Sendable (Bool) -> Void>?
        var streams: [UInt64: AsyncStream<Bool>.Continuation] = [:]
        var lastNumber: UInt64 = 0
        var isOver = false
    }

    private let contents = Mutex(Contents())
    private let queues: HandlerQueues

    init(_ queues: HandlerQueues) { self.queues = queues }

    func setHandler(_ handler: Handler<@Sendable (Bool) -> Void>?) {
        // The old handler's captures are released outside the lock.
        let old = contents.withLock { contents in
            defer { contents.handler = handler }
            return contents.handler
        }
        withExtendedLifetime(old) {}
    }

    func stream() -> AsyncStream<Bool> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Bool.self, bufferingPolicy: .bufferingNewest(1))
        let number = contents.withLock { contents -> UInt64? in
            if contents.isOver { return nil }
            contents.lastNumber += 1
            contents.streams[contents.lastNumber] = continuation
            return contents.lastNumber
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.contents.withLock { $0.streams.removeValue(forKey: number) }
        }
        return stream
    }

    func notify(_ isOnline: Bool) {
        let (handler, streams) = contents.withLock { ($0.handler, Array($0.streams.values)) }
        for stream in streams { stream.yield(isOnline) }
        guard let handler else { return }
        _ = queues.run(on: handler.isolation) { handler.call(isOnline) }
    }

    func finish() {
        queues.close()
        let streams = contents.withLock { contents in
            contents.isOver = true
            defer { contents.streams = [:] }
            return Array(contents.streams.values)
        }
        for stream in streams { stream.finish() }
    }
}
