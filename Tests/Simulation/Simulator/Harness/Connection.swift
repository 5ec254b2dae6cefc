import Session

/// Owns an end of a connection; notified of readiness as by a level-triggered epoll.
package protocol EndpointOwner: AnyObject {
    func ready(_ events: Endpoint.Events)
}

/// A connection of two ends over a simulated network.
package struct Connection {
    package let client: Endpoint
    package let server: Endpoint

    /// - Parameters:
    ///   - up: how the client's bytes travel.
    ///   - down: how the server's bytes travel.
    package init(in world: World, up: Link, down: Link) {
        let upward = Pipe(world, up, random: world.random.split())
        let downward = Pipe(world, down, random: world.random.split())
        client = Endpoint(world, incoming: downward, outgoing: upward)
        server = Endpoint(world, incoming: upward, outgoing: downward)
        upward.sender = client
        upward.receiver = server
        downward.sender = server
        downward.receiver = client
    }

    /// Both ends see the connection reset at once, whatever the links do.
    package func kill() {
        client.isReset = true
        server.isReset = true
        client.poke()
        server.poke()
    }
}

/// One end of a connection: a non-blocking stream socket with bounded kernel buffers.
package final class Endpoint {
    package struct Events: OptionSet, Sendable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }
        package static let readable = Events(rawValue: 1)
        package static let writable = Events(rawValue: 2)
        /// The connection was reset. Reported whatever is watched.
        package static let broken = Events(rawValue: 4)
    }

    package enum Read: Equatable {
        case bytes(Int)
        case wouldBlock
        /// The peer ended its stream.
        case end
        case reset
    }

    package enum Write: Equatable {
        case bytes(Int)
        case wouldBlock
        case failed
    }

    package weak var owner: (any EndpointOwner)?

    private let world: World
    fileprivate let incoming: Pipe
    fileprivate let outgoing: Pipe
    /// nil watches nothing, like a descriptor that is not in the epoll.
    private var watched: Events?
    private var alarm: World.Alarm?
    package private(set) var isClosed = false
    fileprivate var isReset = false

    fileprivate init(_ world: World, incoming: Pipe, outgoing: Pipe) {
        self.world = world
        self.incoming = incoming
        self.outgoing = outgoing
    }

    /// How many bytes have arrived at this end so far.
    package var arrivedBytes: Int { incoming.arrivedBytes }

    package func watch(_ events: Events?) {
        watched = events
        poke()
    }

    /// - Parameter buffer: at least one byte.
    package func read(into buffer: UnsafeMutableRawBufferPointer) -> Read {
        world.require(!isClosed, "read from a closed socket")
        if !incoming.arrived.isEmpty {
            let count = min(buffer.count, incoming.arrived.count)
            incoming.arrived.take(
                into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]))
            incoming.transmit()
            return .bytes(count)
        }
        if isReset { return .reset }
        return incoming.hasEnded ? .end : .wouldBlock
    }

    package func write(_ bytes: UnsafeRawBufferPointer) -> Write {
        world.require(!isClosed, "write to a closed socket")
        if isReset || outgoing.isFinished { return .failed }
        let count = min(bytes.count, outgoing.room)
        if count == 0 { return bytes.isEmpty ? .bytes(0) : .wouldBlock }
        outgoing.send(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        return .bytes(count)
    }

    /// Ends our stream after the bytes that were written; reading continues.
    package func finishWriting() { outgoing.finish() }

    /// Closes the descriptor. Written bytes still travel, unless bytes were left unread: then the
    /// peer sees a reset (RFC 2525 §2.17), and again whenever it sends.
    package func close() {
        guard !isClosed else { return }
        isClosed = true
        alarm?.cancel()
        owner = nil
        if incoming.arrived.isEmpty || isReset {
            outgoing.finish()
        } else {
            outgoing.abort(keepsArrived: true)
        }
    }

    /// Drops the connection in both directions.
    package func reset() {
        outgoing.abort(keepsArrived: false)
        isReset = true
        close()
    }

    fileprivate func poke() {
        guard alarm == nil, !isClosed, !ready.isEmpty else { return }
        // Each turn costs its owner some time, so that endless turns are noticed.
        alarm = world.after(.nanoseconds(2000)) { [weak self] in
            guard let self else { return }
            alarm = nil
            let events = ready
            if !events.isEmpty { owner?.ready(events) }
            poke()
        }
    }

    private var ready: Events {
        guard let watched else { return [] }
        var events: Events = isReset ? [.broken] : []
        if !incoming.arrived.isEmpty || incoming.hasEnded || isReset { events.insert(.readable) }
        if isReset || outgoing.isFinished || outgoing.room > 0 { events.insert(.writable) }
        return events.intersection(watched.union(.broken))
    }
}

/// One direction of a connection.
private final class Pipe {
    private let world: World
    private var link: Link
    private var random: Random
    weak var sender: Endpoint?
    weak var receiver: Endpoint?

    private var unsent = ByteQueue()
    private var inFlight = 0
    var arrived = ByteQueue()
    private(set) var arrivedBytes = 0
    private var sentBytes = 0
    private var isSwallowing = false
    private(set) var isFinished = false
    private(set) var hasEnded = false
    private var isAborted = false
    private var lastArrival: Instant
    private var freeAt: Instant

    init(_ world: World, _ link: Link, random: Random) {
        self.world = world
        self.link = link
        self.random = random
        lastArrival = world.now
        freeAt = world.now
    }

    var room: Int { max(0, link.sendBuffer - unsent.count) }

    func send(_ bytes: UnsafeRawBufferPointer) {
        unsent.append(bytes)
        transmit()
    }

    func finish() {
        guard !isFinished else { return }
        isFinished = true
        transmit()
    }

    /// The receiver sees a reset, one latency from now.
    func abort(keepsArrived: Bool) {
        guard !isAborted else { return }
        isAborted = true
        isFinished = true
        unsent.removeAll()
        world.after(latency()) { [self] in
            guard let receiver, !receiver.isClosed else { return }
            if !keepsArrived { arrived.removeAll() }
            receiver.isReset = true
            receiver.poke()
        }
    }

    /// Sends as many bytes as the receiver's buffer has room for.
    func transmit() {
        while !isAborted, !unsent.isEmpty, arrived.count + inFlight < link.receiveBuffer {
            var count = min(
                unsent.count, random.within(link.segment),
                link.receiveBuffer - arrived.count - inFlight)
            if let fault = link.faults.first {
                if sentBytes >= fault.at {
                    link.faults.removeFirst()
                    suffer(fault.1)
                    continue
                }
                count = min(count, fault.at - sentBytes)
            }
            sentBytes += count
            let bytes = unsent.take(count)
            sender?.poke()
            guard !isSwallowing else { continue }
            if link.bytesPerMillisecond > 0 {
                freeAt =
                    max(freeAt, world.now)
                    + .nanoseconds(count * 1_000_000 / link.bytesPerMillisecond)
            }
            deliver(bytes)
        }
        if isFinished, unsent.isEmpty, !isAborted, !isSwallowing { endOnce() }
    }

    private func deliver(_ bytes: [UInt8]) {
        inFlight += bytes.count
        world.at(nextArrival()) { [self] in
            inFlight -= bytes.count
            guard let receiver else { return }
            if receiver.isClosed {
                // Nobody receives them: the sender's end is reset.
                if let sender, !sender.isReset { receiver.outgoing.abort(keepsArrived: true) }
                return
            }
            if receiver.isReset { return }
            arrived.append(bytes)
            arrivedBytes += bytes.count
            receiver.poke()
            transmit()
        }
    }

    private var isEnding = false

    private func endOnce() {
        guard !isEnding else { return }
        isEnding = true
        world.at(nextArrival()) { [self] in
            hasEnded = true
            receiver?.poke()
        }
    }

    private func suffer(_ fault: Link.Fault) {
        world.count("fault \(Pipe.name(fault))")
        world.trace("network", "\(fault) after \(sentBytes) bytes")
        switch fault {
        case .cut:
            isSwallowing = true
            endOnce()
        case .reset(let keepsArrived):
            if let receiver { receiver.outgoing.abort(keepsArrived: keepsArrived) }
            abort(keepsArrived: keepsArrived)
        case .stall(let time): freeAt = max(freeAt, world.now) + time
        case .corrupt(let mask):
            guard !unsent.isEmpty else { return }
            sentBytes += 1
            let byte = unsent.take(1)[0] ^ mask
            if !isSwallowing { deliver([byte]) }
        case .swallow: isSwallowing = true
        }
    }

    private static func name(_ fault: Link.Fault) -> String {
        switch fault {
        case .cut: "cut"
        case .reset: "reset"
        case .stall: "stall"
        case .corrupt: "corrupt"
        case .swallow: "swallow"
        }
    }

    private func latency() -> Duration { .microseconds(random.within(link.latency)) }

    /// In order, and not before the link has carried the earlier bytes.
    private func nextArrival() -> Instant {
        lastArrival = max(lastArrival, max(freeAt, world.now) + latency())
        return lastArrival
    }
}
