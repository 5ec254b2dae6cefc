import Session
import Wire

/// A server that wants to be asked as often as possible, and options that would let it. The
/// requests stay below the ceiling, and with the default floor attempts keep their distance.
final class EventStorm {
    private enum Habit: CaseIterable {
        case eventAndEnd, eventAndCut, end, refusal, redirect, credentials, unreachable, flap
    }

    private let world: World
    private var random: Random
    private let habits: [Habit]
    private let retry: Int64?
    private var configuration: EventSourceConfiguration
    private var session: EventSourceSession
    private var ceiling: RequestCeiling
    private var alarm: World.Alarm?
    private var attempt = 0
    // Of the running attempt.
    private var hops = 0
    private var askedForCredentials = false
    private var isOver = false
    /// With the server's delay and the default floor: the earliest time of the next attempt.
    private var earliest: Instant

    init(_ world: World, _ random: Random) throws(RealtimeError) {
        self.world = world
        var random = random
        self.random = random.split()
        habits = (0..<random.pick([1, 1, 2, 3])).map { _ in random.pick(Habit.allCases) }
        retry = random.pick([nil, 0, 1, 499])
        configuration = try EventSourceConfiguration(url: "http://a.test/events")
        configuration.reconnectionTime = random.pick([.zero, .milliseconds(5), .seconds(3)])
        if random.chance(50) { configuration.minReconnectionTime = .zero }
        configuration.maxDelay = random.pick([.zero, .seconds(1), .seconds(30)])
        configuration.stableTime = random.pick([.zero, .seconds(10)])
        try configuration.addRetryStatus(503)
        session = EventSourceSession(configuration, lastEventID: "")
        ceiling = .ofEventSource(world)
        earliest = world.now
        world.count("storm")
        world.trace("storm", "\(habits), retry: \(retry as Any)")
    }

    func run() {
        session.start(now: world.now)
        schedule()
        world.after(.seconds(random.within(1...900))) { [self] in
            isOver = true
            alarm?.cancel()
            attempt += 1
        }
    }

    private func uniform() -> Double { Double(random.next() >> 11) * 0x1p-53 }

    private func schedule() {
        alarm?.cancel()
        guard !isOver, session.state != .closed else { return }
        alarm = session.wakeUp.map { due in world.at(due) { [self] in timeReached() } }
    }

    private func timeReached() {
        if case .begin = session.timeReached(
            world.now, requestStarted: world.now, random: uniform())
        {
            world.require(world.now >= earliest, "an attempt before the shortest time")
            if ceiling.mayDelay { world.count("ceiling reached") }
            session.beginAttempt(configuration, now: world.now)
            hops = 0
            askedForCredentials = false
            return send(random.pick(habits))
        }
        schedule()
    }

    private func send(_ habit: Habit) {
        attempt += 1
        let number = attempt
        ceiling.asked()
        schedule()
        world.after(random.milliseconds(0...2)) { [self] in
            guard number == attempt, !isOver else { return }
            answer(habit)
            schedule()
        }
    }

    private func answer(_ habit: Habit) {
        world.trace("request \(attempt)", "\(habit)")
        switch habit {
        case .unreachable:
            end(HTTPFailure(RealtimeError(.connect, "refused"), precedesRequest: true))
        case .refusal: take(503, [HeaderField(name: "Retry-After", value: "0")])
        case .redirect:
            // Redirects as often as the client follows, then something else.
            if random.chance(95) {
                take(307, [HeaderField(name: "Location", value: "/\(attempt)")])
            } else {
                stream(HTTPFailure?.none, hasEvent: true)
            }
        case .credentials:
            if session.request.values("Authorization").isEmpty || random.chance(1) {
                take(401, [])
            } else {
                stream(HTTPFailure?.none, hasEvent: true)
            }
        case .eventAndEnd: stream(HTTPFailure?.none, hasEvent: true)
        case .end: stream(HTTPFailure?.none, hasEvent: false)
        case .eventAndCut:
            stream(HTTPFailure(RealtimeError(.connectionLost, "cut")), hasEvent: true)
        case .flap:
            session.setOnline(false, now: world.now, random: uniform())
            stream(HTTPFailure?.none, hasEvent: true)
            session.setOnline(true, now: world.now, random: 0)
        }
    }

    private func take(_ status: Int, _ fields: [HeaderField]) {
        let answer = session.received(
            ResponseHead(status: status, fields: fields), canAuthorize: true, now: world.now,
            wallClock: 0, random: uniform())
        switch answer {
        case .open: return
        case .again:
            hops += 1
            send(random.chance(95) ? .redirect : .eventAndEnd)
        case .unauthorized:
            world.require(!askedForCredentials, "asks for credentials twice")
            askedForCredentials = true
            hops = 0
            var fresh = configuration
            try? fresh.setHeader(name: "Authorization", value: "Bearer good")
            session.authorized(fresh, now: world.now)
            send(.credentials)
        case .failed(let failure):
            if failure.isFatal { world.count("storm refused") }
            let isTooMany = failure.error.code == .redirect
            world.require(
                isTooMany == (hops == 20 && status == 307), "fails after \(hops) redirects")
        }
    }

    private func stream(_ failure: HTTPFailure?, hasEvent: Bool) {
        take(200, [HeaderField(name: "Content-Type", value: "text/event-stream")])
        if let retry { session.setReconnectionTime(milliseconds: retry) }
        if hasEvent { session.dispatched() }
        end(failure)
    }

    private func end(_ failure: HTTPFailure?) {
        _ = session.ended(failure, now: world.now, random: uniform())
        // A returning network ends the wait after a lost connection.
        if retry != nil, failure == nil { earliest = world.now + configuration.minReconnectionTime }
    }
}
