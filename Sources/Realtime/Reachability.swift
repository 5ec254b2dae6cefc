internal import Engine
import Synchronization
public import Wire

/// Whether there is a network to reach a peer by. What comes back by itself after a loss asks it
/// before an attempt: offline is a state in which nothing is tried and nothing counted.
///
///     let reachability = try Reachability()
///     for await isOnline in reachability.changes { print(isOnline ? "online" : "offline") }
///
/// All members may be used on any thread.
public final class Reachability: Sendable {
    /// By what it is judged.
    public enum Mode: Sendable {
        /// By what the kernel tells of links, addresses and routes. A peer counts as reachable when
        /// it is this machine or a Unix socket; when an interface other than the loopback is up and
        /// running and has a default route; when such an interface has a route to its address; and,
        /// for a name, when such an interface has any route that is not link-local, or, for a name
        /// in .local, any route. In doubt it is reachable: a wrong yes costs an attempt, a wrong no
        /// would never connect. Behind a proxy, the proxy is the peer. Where the system does not
        /// show its network, as `always`.
        case auto
        /// By `setOnline`; online at first.
        case manual
        /// Everything is reachable.
        case always
    }

    let engine: Engine.Reachability
    /// Held, since the last reference to a loop ends it and all that is on it.
    private let loop: Loop
    private let listeners: Listeners

    /// - Throws: `.closed` when the loop is over.
    public init(_ mode: Mode = .auto, on loop: Loop = .shared) throws(RealtimeError) {
        engine = try Engine.Reachability(on: loop.engine, mode: mode.engine)
        self.loop = loop
        let listeners = Listeners()
        self.listeners = listeners
        try engine.setOnChange { listeners.tell($0) }
    }

    deinit {
        engine.abandon()
        listeners.finish()
    }

    /// Whether a host that is known by name counts as reachable.
    public var isOnline: Bool { engine.isOnline }

    public func setMode(_ mode: Mode) throws(RealtimeError) { try engine.setMode(mode.engine) }

    /// Says whether there is a network, for `.manual`; in another mode it is kept for then.
    public func setOnline(_ isOnline: Bool) throws(RealtimeError) {
        try engine.setOnline(isOnline)
    }

    /// Each change of `isOnline` from now on, the latest when they come faster than they are taken.
    /// Ends with this object.
    public var changes: AsyncStream<Bool> { listeners.stream() }

    /// Has `handler` called on the loop's thread with each change of `isOnline`; nil takes it away.
    public func onChange(_ handler: (@Sendable (_ isOnline: Bool) -> Void)?) {
        listeners.setHandler(handler)
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

/// Who is told of changes.
private final class Listeners: Sendable {
    private struct Contents {
        var handler: (@Sendable (Bool) -> Void)?
        var streams: [UInt64: AsyncStream<Bool>.Continuation] = [:]
        var lastNumber: UInt64 = 0
        var isOver = false
    }

    private let contents = Mutex(Contents())

    func setHandler(_ handler: (@Sendable (Bool) -> Void)?) {
        // What the old one holds is let go outside the lock.
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

    func tell(_ isOnline: Bool) {
        let (handler, streams) = contents.withLock { ($0.handler, Array($0.streams.values)) }
        for stream in streams { stream.yield(isOnline) }
        handler?(isOnline)
    }

    func finish() {
        let streams = contents.withLock { contents in
            contents.isOver = true
            defer { contents.streams = [:] }
            return Array(contents.streams.values)
        }
        for stream in streams { stream.finish() }
    }
}
