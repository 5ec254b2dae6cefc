import Session
import Wire

/// A long poll as its driver in `Sources/Engine` drives it, with the rules checked from outside.
final class LongPollRun {
    private let world: World
    private var random: Random
    private let server: PollServer
    private var configuration: LongPollConfiguration
    private var session: LongPollSession
    private var alarm: World.Alarm?

    // The running poll; its number tells late answers from expected ones.
    private var poll = 0
    private var isInFlight = false
    private var pollStart: Instant
    /// A held poll fails after this much silence.
    private let isSilentBound: Duration

    /// The message that must come next.
    private var expected = 0
    private var failures = 0
    private var hasty = 0
    /// The server has said that everything is gone, and no message has come since.
    private var beginsAnew = true
    private var isOnline = true
    private var isClosed = false
    /// When the next poll would be due with a network.
    private var due: Instant
    /// The earliest and latest time of the next poll.
    private var earliest: Instant
    /// The server asked for this delay, and a returning network does not shorten it.
    private var notBefore: Instant
    private var latest: Instant?
    private var ceiling: RequestCeiling

    init(_ world: World) throws {
        self.world = world
        random = world.random.split()
        server = PollServer(world)
        configuration = try LongPollConfiguration(url: "http://example.com/poll")
        try configuration.setCursor(server.mode)
        configuration.interval = random.milliseconds(200...20_000)
        configuration.pollTimeout = random.milliseconds(1000...60_000)
        configuration.minHold = random.pick([.zero, .milliseconds(1000), .seconds(5)])
        configuration.maxDelay = random.pick([.zero, .milliseconds(700), .seconds(30)])
        isSilentBound = configuration.pollTimeout
        session = try LongPollSession(configuration)
        pollStart = world.now
        due = world.now
        earliest = world.now
        notBefore = world.now
        latest = world.now
        ceiling = .ofLongPoll(world)
        world.trace("plan", "\(server.mode), \(configuration.interval.readable)")
    }

    func begin() {
        session.start(now: world.now)
        schedule()
        server.publish(random.within(1...15))
        if random.chance(40) { flap(random.within(1...4)) }
        if random.chance(20) {
            world.after(random.milliseconds(0...300_000)) { [self] in close() }
        }
        // From its own randomness, so that other runs draw the same as before.
        var own = Random(seed: ~world.seed)
        if own.chance(20) { world.after(own.milliseconds(0...60_000)) { [self] in restart() } }
    }

    func verify() {
        world.require(isClosed, "\(expected) of \(server.count) messages came")
    }

    // MARK: The driver

    private func schedule() {
        alarm?.cancel()
        alarm = session.wakeUp.map { due in
            world.at(due) { [self] in timeReached() }
        }
        if isClosed { world.require(session.wakeUp == nil, "wants to wake up although closed") }
    }

    private func timeReached() {
        let event = session.timeReached(
            world.now, requestStarted: isInFlight ? pollStart : nil, random: uniform())
        switch event {
        case .nothing: break
        case .begin: return send()
        case .held:
            world.require(
                world.now - pollStart >= isSilentBound, "gives up a poll before its time")
            drop()
            failures = 0
            nothingNew()
        case .failed(let failure):
            drop()
            failed(failure, asked: .zero)
        }
        schedule()
    }

    private func send() {
        world.require(!isInFlight && !isClosed, "polls during a poll, or after close")
        world.require(isOnline, "polls without a network")
        world.require(world.now >= earliest, "polls too early")
        if let latest { world.require(world.now <= latest, "polls too late") }
        session.beginAttempt(configuration, now: world.now)
        ceiling.asked()
        poll += 1
        isInFlight = true
        pollStart = world.now
        let wanted = server.wanted(session.request)
        // A server that has forgotten starts at the oldest message.
        if wanted.map({ max($0, server.first) }) != max(expected, server.first) {
            world.fail("asks for \(String(describing: wanted)), not \(expected)")
        }
        world.require(
            server.beginsAnew(session.request) == beginsAnew, "the cursor is not as it should be")
        expected = max(expected, server.first)
        let number = poll
        world.trace("poll \(number)", "for message \(expected)")
        server.answer(expected) { [self] answer in receive(answer, number) }
        schedule()
    }

    private func drop() {
        isInFlight = false
        server.forget()
    }

    private func receive(_ answer: PollAnswer, _ number: Int) {
        func later(_ delay: Duration, _ body: @escaping () -> Void) {
            world.after(delay) { [self] in
                guard isInFlight, poll == number, !isClosed else { return }
                body()
                schedule()
            }
        }
        switch answer {
        case .whole(let head, let body, let delay):
            later(delay) { [self] in
                guard take(head, body) else { return }
                drop()
                ended(nil, head, body)
            }
        case .partly(let head, let body, let delay, let stops):
            later(delay) { [self] in
                guard take(head, body), !stops else { return }
                drop()
                ended(HTTPFailure(RealtimeError(.connectionLost, "cut")), head, body)
            }
        case .malformed(let head, let delay):
            later(delay) { [self] in
                guard take(head, 1) else { return }
                drop()
                rejected()
            }
        case .lost(let delay):
            later(delay) { [self] in
                drop()
                ended(HTTPFailure(RealtimeError(.connect, "lost")), nil, 0)
            }
        case .silent: break
        }
    }

    private func take(_ head: ResponseHead, _ body: Int) -> Bool {
        let answer = session.received(
            head, requestStarted: pollStart, canAuthorize: false, now: world.now)
        guard case .read = answer else {
            world.fail("\(head.status) is \(answer)")
            return false
        }
        if body > 0, !receive(body) {
            world.fail("a body of \(body) is too much")
        }
        return true
    }

    private func receive(_ count: Int) -> Bool {
        [UInt8](repeating: 0, count: count).withUnsafeBytes {
            (try? session.received($0, now: world.now)) == true
        }
    }

    private func ended(_ failure: HTTPFailure?, _ head: ResponseHead?, _ body: Int) {
        let outcome = session.ended(
            failure, now: world.now, wallClock: 1_700_000_000, random: uniform())
        world.trace("answer", "\(head?.status ?? 0), \(outcome)")
        switch outcome {
        case .message:
            world.require(failure == nil && head?.status == 200 && body > 0, "no message came")
            expected += body
            beginsAnew = false
            session.delivered(now: world.now)
            failures = 0
            hasty = 0
            allow(.zero)
            // Everything was seen: polls would continue forever.
            if !server.isFaulty, expected == server.count { finish() }
        case .nothing:
            if head?.status != 504 { failures = 0 }
            if let head, head.status == 200 {
                if let next = server.next(head) {
                    expected = next
                    beginsAnew = false
                }
                hasty = world.now - pollStart < .milliseconds(100) ? hasty + 1 : 0
            }
            nothingNew()
        case .failed(let told) where head?.status == 410:
            world.require(told.error.code == .gone && !told.isFatal, "410 is \(told.error)")
            beginsAnew = true
            allow(configuration.interval)
        case .failed(let told):
            let asked = head.flatMap { retryTime(of: $0, wallClock: 0) } ?? .zero
            failed(told, asked: min(asked, .seconds(300)))
        }
    }

    /// The response was not a message, so the cursor must not move to the id that it names.
    private func rejected() {
        let outcome = session.ended(
            nil, now: world.now, wallClock: 1_700_000_000, random: uniform())
        guard case .message = outcome else { return world.fail("no message came") }
        let error = RealtimeError(.protocolViolation, "no batch")
        failed(session.rejected(error, now: world.now, random: uniform()), asked: .zero)
    }

    // MARK: The rules

    private func nothingNew() {
        let held = world.now - pollStart
        let isHasty = held < configuration.minHold || hasty >= 3
        world.count(held >= configuration.minHold ? "held" : "answered at once")
        allow(isHasty ? (pollStart + configuration.interval) - world.now : .zero)
    }

    private func failed(_ told: HTTPSourceFailure, asked: Duration) {
        world.require(!told.isFatal, "\(told.error) is fatal")
        notBefore = world.now + asked
        guard isOnline else {
            world.require(told.retryIn == nil, "a delay without a network")
            return allow(.zero)
        }
        var delay = min(1.0, configuration.maxDelay / .seconds(1))
        for _ in 0..<failures { delay = min(configuration.maxDelay / .seconds(1), delay * 2) }
        failures += 1
        // The attempt that is due.
        world.require(told.attempt == failures + 1, "calls it \(told.attempt), not \(failures + 1)")
        let wait = (told.retryIn ?? .zero) / .seconds(1)
        let floor = asked / .seconds(1)
        world.require(
            wait >= max(delay / 2, floor) - 1e-6 && wait <= max(delay, floor) + 1e-6,
            "waits \(wait) s, half to all of \(delay) is right, the server asks \(floor)")
        allow(told.retryIn ?? .zero)
    }

    private func allow(_ delay: Duration) {
        due = world.now + delay
        earliest = due
        latest = isOnline ? due : nil
    }

    // MARK: The network and the user

    private func flap(_ left: Int) {
        guard left > 0 else { return }
        world.after(random.milliseconds(0...60_000)) { [self] in
            guard !isClosed else { return }
            world.count("offline")
            isOnline = false
            latest = nil
            session.setOnline(false, now: world.now, random: uniform())
            schedule()
            world.after(random.milliseconds(0...60_000)) { [self] in
                isOnline = true
                guard !isClosed else { return }
                session.setOnline(true, now: world.now, random: uniform())
                // Anything that waited for the network continues within a second.
                earliest = max(failures > 0 ? notBefore : due, world.now)
                if !isInFlight { latest = max(due, notBefore, world.now + .seconds(1)) }
                schedule()
                flap(left - 1)
            }
        }
    }

    private func restart() {
        guard !isClosed else { return }
        world.count("restarted")
        drop()
        session.restart(now: world.now)
        notBefore = world.now
        allow(.zero)
        schedule()
    }

    private func close() {
        guard !isClosed else { return }
        world.count("closed")
        end()
    }

    private func finish() {
        world.count("everything came")
        end()
    }

    private func end() {
        isClosed = true
        session.close()
        drop()
        schedule()
    }

    private func uniform() -> Double { Double(random.next() >> 11) * 0x1p-53 }
}
