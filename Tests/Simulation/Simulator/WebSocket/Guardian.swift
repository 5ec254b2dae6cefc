import Session
import Wire

/// Watches the client while it runs: its memory must stay within the limits, and its timers in
/// their bounds. The final verdict uses these records.
final class Guardian {
    /// A ping of the heartbeat: header, mask and number.
    private static let pingBytes = 14
    /// The most that a simulated loop calls a timer too late.
    static let latestMicroseconds = 3000
    private static let lateness = Duration.milliseconds(10)
    /// The most that the session may queue by itself: up to its crowded mark.
    private static let ownBytes = 64 << 10

    private let world: World
    private let plan: Plan
    private var options: WebSocketConfiguration { plan.configuration }

    /// Every byte that was read, including the handshake's response.
    private(set) var stream: [UInt8] = []
    private(set) var headBytes = 0
    /// How many messages were delivered by the time that this many bytes after the head were used.
    private(set) var checkpoints: [(used: Int, delivered: Int)] = []
    /// The state of the session when the user closed.
    private(set) var closedIn: WebSocketSession.State?
    /// The close code if a peer was silent for too long.
    private(set) var timeoutCode: CloseCode?
    private(set) var pongCount = 0
    private var hasFailed = false

    private var isPaused = false
    private var closingSince: Instant?
    /// Since when one of the session's own pings waits for its pong.
    private var unansweredSince: Instant?
    /// Other bytes waited before that ping, so that the peer could not answer it at once.
    private var wasPingDelayed = false
    /// When the peer last took bytes.
    private var lastProgress: Instant
    /// When the last part of a message came, or receiving resumed.
    private var lastMessage: Instant
    private var parts = FrameParts()
    private var pingCount = 0
    private var largestSend = 0

    init(_ world: World, _ plan: Plan) {
        self.world = world
        self.plan = plan
        lastMessage = world.now
        lastProgress = world.now
    }

    // Calls from the client

    func read(_ bytes: UnsafeRawBufferPointer) {
        stream.append(contentsOf: bytes)
        if !options.requiresPong { unansweredSince = nil }
    }

    func headEnded(behind rest: Int) { headBytes = stream.count - rest }

    func opened() {
        world.trace("client", "is open")
        lastMessage = world.now
    }

    func messagesCame() { lastMessage = world.now }

    /// The session has read these bytes of frames.
    func used(_ bytes: UnsafeRawBufferPointer) {
        guard parts.take(bytes) else { return }
        if world.now > lastMessage { world.count("part of a message") }
        lastMessage = world.now
    }

    /// The session has read so many bytes of a message in another way.
    func usedDirectly(_ count: Int) {
        parts.skip(count)
        lastMessage = world.now
    }

    func sent(_ bytes: Int) { largestSend = max(largestSend, bytes) }

    /// - Parameter waiting: how many bytes wait to be sent, including the ping.
    func pinged(byHeartbeat: Bool, waiting: Int) {
        pingCount += 1
        world.trace("client", "pings")
        guard byHeartbeat, unansweredSince == nil else { return }
        unansweredSince = world.now
        wasPingDelayed = waiting > Guardian.pingBytes && !options.requiresPong
    }

    func ponged() {
        pongCount += 1
        unansweredSince = nil
    }

    func paused(_ isPaused: Bool) {
        guard isPaused != self.isPaused else { return }
        self.isPaused = isPaused
        guard !isPaused else { return }
        lastMessage = world.now
        if unansweredSince != nil { unansweredSince = world.now }
    }

    func closes(_ state: WebSocketSession.State, hasPendingEnd: Bool) {
        if closedIn == nil { closedIn = state }
        if hasPendingEnd { world.count("user closes before a pending end") }
        if closingSince == nil { closingSince = world.now }
    }

    /// The peer's close frame or violation was found.
    func finished(failed: Bool) {
        if closingSince == nil {
            closingSince = world.now
            hasFailed = failed
        }
    }

    func wrote() { lastProgress = world.now }

    func writeFailed() { world.count("write failed") }

    /// - Parameter waiting: bytes that the peer had not taken; after many, no ping is sent.
    func timedOut(_ code: CloseCode, waiting: Int) {
        timeoutCode = code
        world.require(!plan.isGentle, "a timeout with \(code) although the peer is well")
        let since: Instant?
        let limit: Duration
        switch code {
        case .internalError:
            world.count("pong timeout")
            let stuckSince = waiting > Guardian.ownBytes ? lastProgress : nil
            if !options.requiresPong { world.count("silence after a ping") }
            (since, limit) = (unansweredSince ?? stuckSince, options.pongTimeout)
        case .goingAway:
            world.count("idle timeout")
            (since, limit) = (lastMessage, options.idleTimeout)
        default: return world.fail("a timeout with \(code)")
        }
        guard let since, limit > .zero, !isPaused else {
            return world.fail("a timeout with \(code), and nothing was awaited")
        }
        world.require(
            world.now >= since + limit,
            "a timeout with \(code) after \(world.now - since), before \(limit)")
    }

    func closeTimedOut() {
        world.count("close timeout")
        guard let since = closingSince else { return world.fail("a close timeout while open") }
        // On time by its own clock: recorded at most one turn of the loop later.
        world.require(
            world.now + .microseconds(1) >= since + closeLimit,
            "a close timeout after \(world.now - since), before \(closeLimit)")
    }

    /// The limit after our close frame: the option, and 10 s for a peer that broke the protocol.
    private var closeLimit: Duration {
        if options.closeTimeout > .zero { return options.closeTimeout }
        return hasFailed ? .seconds(10) : .seconds(1_000_000)
    }

    func ended() {
        guard let since = closingSince else { return }
        world.require(
            world.now <= latestEnd(of: since) + Guardian.lateness,
            "ended \(world.now - since) after the closing began, the limit is \(closeLimit)")
    }

    /// While bytes before the close frame are written, the time begins anew whenever it is over,
    /// which is noticed late.
    private func latestEnd(of since: Instant) -> Instant {
        guard lastProgress >= since, !hasFailed else { return since + closeLimit }
        let latest = lastProgress + closeLimit * 2 + Guardian.lateness
        return min(latest, since + closeLimit * 10)
    }

    // Checks

    /// After each step of the session: the assembled bytes are at most one message and the
    /// delivered ones of one read; for a message in pieces, as much as one read can become.
    func step(_ assembled: Int) {
        let limit: Int
        if options.deliversPieces {
            limit = options.compression.enabled ? 4096 * 1032 : plan.receiveBytes + 3
        } else {
            guard plan.messageLimit > 0 else { return }
            limit = plan.messageLimit + 1 + plan.receiveBytes
        }
        world.require(assembled <= limit, "\(assembled) bytes assembled, \(limit) are allowed")
    }

    /// After each turn.
    func check(_ client: Client) {
        guard client.life.stage == .open, let session = client.session else { return }
        world.require(client.batch.isEmpty, "assembled messages wait from one turn to the next")
        world.require(client.held.count <= plan.receiveBytes, "more than one read is held")
        let limit = options.deliversPieces ? 3 : plan.messageLimit == 0 ? .max : plan.messageLimit
        let assembled = session.pointee.assembled.count
        // Bytes with a violation stay until the connection ends.
        let isOpen = session.pointee.state == .open
        world.require(
            !isOpen || assembled <= limit, "\(assembled) bytes wait from one turn to the next")
        checkOutgoing(session.pointee.outgoing.count)
        if session.pointee.state == .open, client.user.close == nil {
            let used = stream.count - headBytes - client.held.count
            let delivered = client.user.delivered.count
            if checkpoints.last?.used != used { checkpoints.append((used, delivered)) }
        }
        checkTimer(session.pointee.wakeUp, session.pointee.state)
    }

    private func checkOutgoing(_ count: Int) {
        let payload = max(options.sendLimit == 0 ? Int.max >> 8 : options.sendLimit, largestSend)
        // Allow for headers, and for what deflate adds to bytes that it cannot compress.
        let frame = options.maxFrameBytes == 0 ? payload : options.maxFrameBytes
        let message = payload + payload / 100 + 14 * (payload / max(frame, 1) + 2) + 100
        let limit = message + Guardian.ownBytes + 139 * (pingCount + 2)
        world.require(count <= limit, "\(count) bytes to send, \(limit) are allowed")
    }

    private func checkTimer(_ wakeUp: Instant?, _ state: WebSocketSession.State) {
        var latest: Instant?
        if state != .open {
            if closingSince == nil { closingSince = world.now }
            if let closingSince, closeLimit < .seconds(1_000_000) {
                latest = latestEnd(of: closingSince)
            }
        } else {
            if options.pingInterval > .zero { latest = world.now + options.pingInterval }
            if let unansweredSince, options.pongTimeout > .zero, !isPaused {
                var deadline = unansweredSince + options.pongTimeout
                // The time begins anew when it is over, if bytes before the ping went out in it.
                if wasPingDelayed, lastProgress > unansweredSince {
                    deadline = max(deadline, lastProgress + options.pongTimeout * 2)
                }
                latest = latest.map { min($0, deadline) } ?? deadline
            }
            if options.idleTimeout > .zero, !isPaused {
                let deadline = lastMessage + options.idleTimeout
                latest = latest.map { min($0, deadline) } ?? deadline
            }
        }
        guard let latest else {
            return world.require(wakeUp == nil, "wants to wake up although nothing is due")
        }
        guard let wakeUp else { return world.fail("no wakeUp although a time limit runs") }
        world.require(wakeUp <= latest, "wakes up \(wakeUp - latest) too late")
        world.require(world.now <= wakeUp + Guardian.lateness, "a wakeUp was missed")
    }
}
