import Session
import Wire

/// A server that wants to be polled as often as possible, and options that would let it. The
/// requests stay below the ceiling, and a server without news is polled once per interval.
final class PollStorm {
    private enum Habit: CaseIterable {
        case same, swings, noCursor, news, moves, empty, nothing, emptyBatch, rejected, gone
        case refusal, lost, redirect, credentials, silent, flap

        /// Answers after which the interval is kept, except for a burst without a cursor.
        var isPaced: Bool {
            [.same, .swings, .noCursor, .news, .empty, .nothing, .emptyBatch].contains(self)
        }
    }

    private let world: World
    private var random: Random
    private let habits: [Habit]
    private var configuration: LongPollConfiguration
    private var session: LongPollSession
    private var ceiling: RequestCeiling
    private var alarm: World.Alarm?
    private var poll = 0
    /// In the running attempt.
    private var askedForCredentials = false
    private var isOver = false
    private var lastStart: Instant?
    /// The minimum time between the starts of polls, with a few exceptions.
    private let distance: Duration
    /// How many polls may start before that.
    private var early = 0
    /// After this many more answers, the next poll starts at once.
    private var eager = 0
    private var answered: Instant?
    /// The cursor of the next poll, and those of the latest eight polls that got a message.
    private var place = ""
    private var places: [String] = []

    init(_ world: World, _ random: Random) throws(RealtimeError) {
        self.world = world
        var random = random
        self.random = random.split()
        let habits = (0..<random.within(1...3)).map { _ in random.pick(Habit.allCases) }
        self.habits = habits
        configuration = try LongPollConfiguration(url: "http://a.test/poll")
        try configuration.setCursor(random.pick([.validators, .headerID, .queryID, .none]))
        configuration.interval = random.pick([.zero, .milliseconds(100), .seconds(15)])
        configuration.minHold = random.pick([.zero, .seconds(1)])
        configuration.maxDelay = random.pick([.zero, .seconds(30)])
        configuration.pollTimeout = random.pick([.milliseconds(1), .seconds(60)])
        session = try LongPollSession(configuration)
        ceiling = .ofLongPoll(world)
        let isPaced =
            habits.allSatisfy(\.isPaced) && configuration.minHold > .zero
            && configuration.pollTimeout > .seconds(1)
        distance = isPaced ? configuration.interval : .zero
        // Without a cursor a burst of messages may come: the first and four repeats of it, or 20
        // new ones.
        let staysWithoutCursor = habits.contains(.noCursor) || configuration.cursorMode == .none
        early = habits.contains(.news) ? 21 : staysWithoutCursor ? 6 : 0
        let hasNewsOnly = habits.allSatisfy { $0 == .news }
        if hasNewsOnly, configuration.pollTimeout > .seconds(1) {
            // Without a `minHold` every poll counts as held.
            eager = configuration.minHold > .zero ? 20 : .max
        }
        world.count("storm")
        world.trace("storm", "\(habits), \(configuration.cursorMode)")
    }

    func run() {
        session.start(now: world.now)
        schedule()
        world.after(.seconds(random.within(1...20))) { [self] in
            isOver = true
            alarm?.cancel()
            poll += 1
        }
    }

    private func uniform() -> Double { Double(random.next() >> 11) * 0x1p-53 }

    private func schedule() {
        alarm?.cancel()
        guard !isOver, session.state != .closed else { return }
        alarm = session.wakeUp.map { due in world.at(due) { [self] in timeReached() } }
    }

    private func timeReached() {
        switch session.timeReached(world.now, requestStarted: lastStart, random: uniform()) {
        case .nothing: break
        case .begin:
            session.beginAttempt(configuration, now: world.now)
            askedForCredentials = false
            if let lastStart, world.now < lastStart + distance {
                early -= 1
                world.require(early >= 0, "a poll before the interval is over")
            }
            if let answered, eager > 0 {
                eager -= 1
                let isPrompt = world.now == answered || ceiling.mayDelay
                world.require(isPrompt, "a new message is followed by a wait")
            }
            lastStart = world.now
            if ceiling.mayDelay { world.count("ceiling reached") }
            return send(random.pick(habits))
        case .held, .failed: poll += 1
        }
        schedule()
    }

    private func send(_ habit: Habit) {
        poll += 1
        let number = poll
        ceiling.asked()
        schedule()
        if habit == .silent { return }
        world.after(random.milliseconds(0...2)) { [self] in
            guard number == poll, !isOver else { return }
            answer(habit)
            answered = world.now
            schedule()
        }
    }

    private func answer(_ habit: Habit) {
        world.trace("poll \(poll)", "\(habit)")
        let cursor = [
            HeaderField(name: "ETag", value: "same"),
            HeaderField(name: "Last-Event-ID", value: "1"),
        ]
        switch habit {
        case .same: message(cursor)
        case .swings:
            message(["ETag", "Last-Event-ID"].map { HeaderField(name: $0, value: "s\(poll % 3)") })
        case .noCursor: message([])
        case .news: news()
        case .moves:
            message(["ETag", "Last-Event-ID"].map { HeaderField(name: $0, value: "\(poll)") })
        case .emptyBatch: message(cursor, isEmpty: true)
        case .rejected: message(cursor, isRejected: true)
        case .empty: take(200, [])
        case .nothing: take(random.pick([204, 304, 408]), [])
        case .gone: take(410, [])
        case .refusal: take(503, [HeaderField(name: "Retry-After", value: "0")])
        case .redirect:
            take(307, [HeaderField(name: "Location", value: "/\(poll)")])
        case .credentials:
            if session.request.values("Authorization").isEmpty || random.chance(1) {
                take(401, [])
            } else {
                take(503, [])
            }
        case .lost:
            _ = session.ended(
                HTTPFailure(RealtimeError(.connectionLost, "cut")), now: world.now, wallClock: 0,
                random: uniform())
        case .silent: return
        case .flap:
            session.setOnline(false, now: world.now, random: uniform())
            news()
            session.setOnline(true, now: world.now, random: 0)
        }
    }

    /// A cursor that none of the latest polls had is polled at once.
    private func noteMessage(to next: String) {
        places = places.suffix(7) + [place]
        if !places.contains(next) { early += 1 }
    }

    private func news() { message([], body: withUnsafeBytes(of: poll) { Array($0) }) }

    private func message(
        _ fields: [HeaderField], body: [UInt8] = [0], isEmpty: Bool = false,
        isRejected: Bool = false
    ) {
        let next = configuration.cursorMode == .none ? "" : fields.last?.value ?? place
        if !isEmpty, !isRejected, !next.isEmpty { noteMessage(to: next) }
        if !isRejected { place = next }
        take(200, fields, body: body)
        if isRejected {
            _ = session.rejected(
                RealtimeError(.protocolViolation, "no batch"), now: world.now, random: uniform())
        } else {
            session.delivered(isEmpty: isEmpty, now: world.now)
        }
    }

    private func take(_ status: Int, _ fields: [HeaderField], body: [UInt8] = []) {
        let answer = session.received(
            ResponseHead(status: status, fields: fields), requestStarted: lastStart,
            canAuthorize: true, now: world.now)
        switch answer {
        case .again: send(random.chance(95) ? .redirect : .moves)
        case .unauthorized:
            world.require(!askedForCredentials, "asks for credentials twice")
            askedForCredentials = true
            var fresh = configuration
            try? fresh.setHeader(name: "Authorization", value: "Bearer good")
            session.authorized(fresh, now: world.now)
            send(.credentials)
        case .failed(let failure):
            if failure.isFatal { world.count("storm refused") }
        case .read:
            if !body.isEmpty {
                body.withUnsafeBytes { _ = try? session.received($0, now: world.now) }
            }
            _ = session.ended(nil, now: world.now, wallClock: 0, random: uniform())
        }
    }
}
