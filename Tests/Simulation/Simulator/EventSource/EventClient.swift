import Session
import Wire

/// Calls the machine and the parser in the same order as `EventSourceDriver`, and checks what they
/// do.
final class EventClient {
    private let world: World
    private let plan: EventPlan
    private var server: EventServer
    private var configuration: EventSourceConfiguration
    private var session: EventSourceSession
    private var parser: EventStreamParser
    private var random: Random
    private var alarm: World.Alarm?
    /// The number of the running attempt; results of older ones are ignored.
    private var attempt = 0
    private var isClosed = false
    private var isFatal = false
    private var isOnline = true
    /// Whether it waits for the next attempt's time, or for the network.
    private var isWaiting = true
    /// When the network came back.
    private var onlineSince: Instant
    private var delivered = 0
    // Rule C9, by this file's own count.
    private var base: Duration
    private var failures = 0
    private var hasDispatched = false
    private var openedAt: Instant?
    private var lastByteAt: Instant?
    private var requestStarted: Instant?
    private var earliest: Instant
    /// The server asked for this delay, and a returning network does not shorten it.
    private var notBefore: Instant
    private var askedDelay = Duration.zero
    private var ceiling: RequestCeiling

    init(_ world: World, _ plan: EventPlan, _ server: EventServer) throws(RealtimeError) {
        self.world = world
        self.plan = plan
        self.server = server
        random = world.random.split()
        configuration = try EventSourceConfiguration(url: "http://a.test/events")
        configuration.reconnectionTime = plan.reconnectionTime
        configuration.minReconnectionTime = plan.minReconnectionTime
        configuration.maxDelay = plan.maxDelay
        configuration.maxReconnects = plan.maxReconnects
        configuration.reconnects = plan.reconnects
        configuration.responseTimeout = plan.responseTimeout
        configuration.idleTimeout = plan.idleTimeout
        for status in [429, 503] { try configuration.addRetryStatus(status) }
        session = EventSourceSession(configuration, lastEventID: "")
        parser = EventStreamParser()
        base = plan.reconnectionTime
        onlineSince = world.now
        earliest = world.now
        notBefore = world.now
        ceiling = .ofEventSource(world)
    }

    func start() {
        session.start(now: world.now)
        arm()
        var online = true
        for time in plan.flaps {
            online.toggle()
            let isOnline = online
            world.after(time) { [self] in setOnline(isOnline) }
        }
        for time in plan.restarts { world.after(time) { [self] in restart() } }
        if let time = plan.closesAt { world.after(time) { [self] in close() } }
    }

    func check() {
        world.count(delivered == plan.events.count ? "all delivered" : "ended before")
        guard !isClosed, !isFatal else { return }
        world.require(
            delivered == plan.events.count, "\(delivered) of \(plan.events.count) events came")
    }

    private func uniform() -> Double { Double(random.next() >> 11) * 0x1p-53 }

    private func arm() {
        alarm?.cancel()
        guard let due = session.wakeUp else { return }
        world.require(due >= world.now, "wants to be called in the past")
        alarm = world.at(due) { [self] in timeReached() }
    }

    private func timeReached() {
        switch session.timeReached(
            world.now, requestStarted: requestStarted, random: uniform())
        {
        case .nothing: arm()
        case .begin: begin()
        case .failed(let failure):
            world.count(
                openedAt == nil ? "no answer in time" : "silent for too long")
            if openedAt != nil, let lastByteAt {
                let isSilent = world.now - lastByteAt >= plan.idleTimeout
                world.require(isSilent, "gives up a stream that brings bytes")
            }
            drop()
            tell(failure, least: .zero)
        }
    }

    private func begin() {
        // One that does not repeat attempts makes its only one.
        world.require(isOnline || !plan.reconnects, "an attempt without a network")
        world.require(!isClosed && !isFatal, "an attempt after the end")
        world.require(world.now >= earliest, "an attempt before its time")
        isWaiting = false
        session.beginAttempt(configuration, now: world.now)
        world.trace("client", "attempt with \(session.request.values("Last-Event-ID"))")
        send()
    }

    private func send() {
        drop()
        ceiling.asked()
        attempt += 1
        openedAt = nil
        hasDispatched = false
        requestStarted = world.now
        let number = attempt
        let answer = server.answer(session.request, world)
        arm()
        world.after(random.milliseconds(0...200)) { [self] in
            guard number == attempt else { return }
            take(answer, number)
        }
    }

    private func take(_ answer: EventAnswer, _ number: Int) {
        switch answer {
        case .silent: return
        case .unreachable:
            ended(HTTPFailure(RealtimeError(.connect, "refused"), precedesRequest: true))
        case .status(let status, let fields):
            received(ResponseHead(status: status, fields: fields))
        case .stream(let chunks, let end):
            let type = HeaderField(name: "Content-Type", value: "text/event-stream")
            received(ResponseHead(status: 200, fields: [type]))
            guard number == attempt, openedAt != nil else { return }
            play(chunks[...], end, number)
        }
    }

    private func received(_ head: ResponseHead) {
        let answer = session.received(
            head, canAuthorize: plan.needsToken, now: world.now, wallClock: 0, random: uniform())
        world.trace("server", "\(head.status)")
        switch answer {
        case .open:
            openedAt = world.now
            lastByteAt = world.now
            arm()
        case .again:
            world.count("redirected")
            send()
        case .unauthorized:
            world.require(session.wakeUp == nil, "a time limit while credentials are fetched")
            drop()
            world.after(random.milliseconds(0...5000)) { [self] in authorize(head) }
        case .failed(let failure):
            drop()
            let isPassing = plan.reconnects && (head.status == 429 || head.status == 503)
            if !isPassing { world.count("fatal refusal") }
            world.require(failure.isFatal == !isPassing || isExhausted(failure), "\(failure)")
            let asked = retryTime(of: head, wallClock: 0) ?? .zero
            tell(failure, least: min(asked, .seconds(300)))
        }
    }

    private func authorize(_ head: ResponseHead) {
        guard session.isAuthorizing, !isClosed else { return }
        if plan.givesToken {
            world.count("credentials given")
            try? configuration.setHeader(name: "Authorization", value: "Bearer good")
            session.authorized(configuration, now: world.now)
            send()
        } else {
            world.count("credentials refused")
            tell(session.unauthorized(HTTPResponse(head, body: [])), least: .zero)
        }
    }

    private func play(
        _ chunks: ArraySlice<(Duration, [UInt8])>, _ end: HTTPFailure??, _ number: Int
    ) {
        guard let (delay, bytes) = chunks.first else {
            guard let end else { return }
            return ended(end)
        }
        world.after(delay) { [self] in
            guard number == attempt else { return }
            session.received(now: world.now)
            lastByteAt = world.now
            arm()
            read(bytes)
            guard number == attempt else { return }
            play(chunks.dropFirst(), end, number)
        }
    }

    private func read(_ bytes: [UInt8]) {
        let number = attempt
        bytes.withUnsafeBytes { input in
            var used = 0
            do throws(RealtimeError) {
                while number == attempt {
                    switch try parser.next(input, &used) {
                    case .needMoreBytes: return learnID()
                    case .comment: world.fail("a comment without a listener")
                    case .retry(let milliseconds):
                        let asked = Duration.milliseconds(milliseconds)
                        base = max(asked, plan.minReconnectionTime)
                        askedDelay = base
                        session.setReconnectionTime(milliseconds: milliseconds)
                    case .event(let event):
                        learnID()
                        deliver(event)
                    }
                }
            } catch {
                world.fail("the stream is refused: \(error)")
            }
        }
    }

    private func learnID() {
        session.lastEventID = String(decoding: parser.lastEventID, as: UTF8.self)
    }

    private func deliver(_ event: StreamEvent) {
        session.dispatched()
        hasDispatched = true
        world.require(!isClosed && !isFatal, "an event after the end")
        let data = String(decoding: event.data, as: UTF8.self)
        guard delivered < plan.events.count else { return world.fail("one event too many") }
        world.require(
            data == plan.events[delivered]
                && session.lastEventID == String(delivered + 1) && event.hadID,
            "event \(session.lastEventID) with \(data.debugDescription) after \(delivered)")
        delivered += 1
        // Run for a while longer, to notice what comes too often; then there is nothing left to
        // see.
        if delivered == plan.events.count { world.after(.seconds(120)) { [self] in close() } }
    }

    private func ended(_ failure: HTTPFailure?) {
        let told = session.ended(failure, now: world.now, random: uniform())
        let isPoll = failure == nil && hasDispatched
        if isPoll { world.count("polled") }
        drop()
        tell(told, least: failure == nil ? askedDelay : .zero, isPoll: isPoll)
    }

    private func drop() {
        attempt += 1
        parser.endBody()
    }

    private func isExhausted(_ failure: HTTPSourceFailure) -> Bool {
        failure.error.code == .reconnectsExhausted
    }

    private func tell(_ failure: HTTPSourceFailure, least: Duration, isPoll: Bool = false) {
        world.trace("client", "\(failure.error.message); again in \(failure.retryIn as Any)")
        if isPoll || wasStable { failures = 0 } else if isOnline { failures += 1 }
        openedAt = nil
        if failure.isFatal {
            isFatal = true
            if !plan.reconnects { world.count("told not to reconnect") }
            world.require(
                session.state == .closed && session.wakeUp == nil, "continues after its end")
            if isExhausted(failure) {
                world.count("reconnects exhausted")
                world.require(
                    plan.maxReconnects > 0 && failures > plan.maxReconnects, "gave up too early")
            }
            return arm()
        }
        isWaiting = true
        world.require(plan.reconnects, "reconnects, though told not to")
        notBefore = world.now + least
        world.require(session.state == .connecting, "not connecting")
        world.require(
            plan.maxReconnects == 0 || failures <= plan.maxReconnects, "continues beyond the limit")
        if let delay = failure.retryIn {
            world.require(isOnline, "reports a delay without a network")
            check(delay, least)
            earliest = world.now + delay
        } else {
            world.require(!isOnline, "reports no delay")
            world.count("waited for the network")
        }
        arm()
    }

    /// Checks the delay against C9.
    private func check(_ delay: Duration, _ least: Duration) {
        let low = base / .seconds(1)
        var range = low...(low * 1.2)
        if failures > 1 {
            world.count("longer delays")
            let cap = max(plan.maxDelay / .seconds(1), low)
            var full = max(low, 0.25)
            for _ in 1..<failures { full = min(full * 2, max(cap, full)) }
            full = min(full, cap)
            range = max(low, full / 2)...max(low, full)
        }
        let floor = least / .seconds(1)
        let seconds = delay / .seconds(1)
        world.require(
            seconds >= max(range.lowerBound, floor) - 1e-6
                && (seconds <= max(range.upperBound, floor) + 1e-6 || ceiling.mayDelay),
            "waits \(seconds) s where \(range) and at least \(floor) is allowed")
    }

    // MARK: The user and the network

    private func setOnline(_ online: Bool) {
        guard !isClosed, !isFatal else { return }
        world.trace("network", online ? "comes" : "goes")
        isOnline = online
        session.setOnline(online, now: world.now, random: uniform())
        if online, isWaiting {
            earliest = max(world.now, notBefore)
            let latest = max(world.now + .seconds(1), notBefore)
            let isDue = session.wakeUp.map { $0 <= latest } ?? false
            world.require(isDue || ceiling.mayDelay, "waits although there is a network")
            if notBefore > world.now { world.count("the server's wish outlived a flap") }
        }
        arm()
    }

    private var wasStable: Bool {
        openedAt.map { world.now - $0 >= configuration.stableTime } ?? false
    }

    private func restart() {
        guard !isClosed, !isFatal, !session.isAuthorizing else { return }
        world.count("restarted")
        if wasStable { failures = 0 }
        drop()
        openedAt = nil
        session.restart(now: world.now)
        isWaiting = true
        earliest = world.now
        notBefore = world.now
        let mayWait = !isOnline && plan.reconnects
        world.require(mayWait || session.wakeUp == world.now, "waits although it was restarted")
        arm()
    }

    private func close() {
        guard !isFatal, !isClosed else { return }
        world.count("closed")
        isClosed = true
        session.close()
        drop()
        world.require(session.wakeUp == nil, "wants to be called after the end")
        arm()
    }
}
