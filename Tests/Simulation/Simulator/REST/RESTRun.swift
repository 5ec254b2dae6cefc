import Session
import Wire

/// Requests that are sent, fail, wait and are sent again (R1 to R12). This is the machine's driver,
/// its user, the server and the network in one.
package enum RESTScenario: Scenario {
    package static let name = "rest"

    package static var situations: [String] {
        [
            "ok", "httpStatus", "connectionLost", "connect", "timeout", "tls", "deadline",
            "redirect", "auth", "queueFull", "expired", "cancelled", "closed", "retried a failure",
            "retried a status", "waited for Retry-After", "redirected", "replayed",
            "went back to the queue", "dropped the oldest", "rewound a body", "gentle",
            "order delayed a request", "host limit delayed a request", "stood still",
            "streamed for longer than an attempt", "streamed beyond the deadline",
        ]
    }

    package static func run(in world: World) {
        let run = RESTRun(world)
        run.begin()
        world.run(until: world.now + .seconds(3600))
        run.guardian.end()
    }
}

final class RESTRun {
    private let world: World
    private var random: Random
    /// For later additions, so that older seeds keep their meaning.
    private var moreRandom: Random
    private let plan: RESTPlan
    private var session: RESTSession
    let guardian: RESTGuardian
    private var isOnline = true
    private var alarm: World.Alarm?
    /// The future events of a running exchange.
    private var exchanges: [RESTSession.ID: [World.Alarm]] = [:]
    private var isActing = false

    init(_ world: World) {
        self.world = world
        random = world.random.split()
        var copy = random
        moreRandom = copy.split()
        var plan = RESTPlan(&random)
        plan.drawMore(&moreRandom)
        self.plan = plan
        session = RESTSession(plan.configuration)
        session.renewsCredentials = plan.renews
        session.setCredential("Bearer 1")
        guardian = RESTGuardian(world, plan)
        if plan.isGentle { world.count("gentle") }
        world.trace("plan", "\(plan.requests.count) requests, \(plan.flaps.count) flaps")
    }

    func begin() {
        for request in plan.requests {
            world.after(request.at) { [self] in submit(request) }
        }
        for time in plan.flaps {
            world.after(time) { [self] in flap() }
        }
        // In the end the network returns.
        if !plan.flaps.count.isMultiple(of: 2) {
            world.after((plan.flaps.last ?? .zero) + .seconds(90)) { [self] in flap() }
        }
        if let time = plan.closeAt {
            world.after(time) { [self] in
                world.trace("user", "close")
                guardian.closed()
                session.close()
                act()
                world.require(guardian.outstanding == 0, "close left requests behind")
            }
        }
    }

    private func uniform() -> Double { Double(random.next() >> 11) * 0x1p-53 }

    private func isReachable(_ url: HTTPURL) -> Bool { isOnline || url.host == RESTPlan.loopback }

    private func submit(_ request: RESTPlan.Request) {
        guard let url = try? HTTPURL(parsing: "http://\(request.host)/", as: .http) else {
            return world.fail("a URL is refused")
        }
        var http = HTTPRequest(request.method, url)
        if request.isKeyed { http.set("Idempotency-Key", "own") }
        if request.streamsBody { http.body = .stream(length: nil) }
        let reachable = isReachable(url)
        guardian.willSubmit(request, isReachable: reachable)
        let id = session.submit(
            RESTRequest(
                http, request.policy, canRewind: request.canRewind,
                streamsAnswer: request.streamsAnswer),
            key: "key", isReachable: reachable, now: world.now)
        world.trace("user", "submit \(id) \(request.method) \(request.host)")
        guardian.submitted(id)
        act()
        if let time = request.cancelAt {
            world.after(time) { [self] in
                guardian.cancelled(id)
                session.cancel(id, now: world.now)
                act()
            }
        }
    }

    private func flap() {
        isOnline.toggle()
        world.trace("network", isOnline ? "online" : "offline")
        guardian.flapped(isOnline)
        session.reachabilityChanged(now: world.now, random: uniform()) { isReachable($0) }
        act()
    }

    /// Performs the machine's actions, as `RESTClient` does.
    private func act() {
        guard !isActing else { return }
        isActing = true
        while world.violation == nil, let action = session.nextAction() {
            world.trace("machine", RESTRun.text(action))
            switch action {
            case .start(let id, let request, _, let rewinds):
                guardian.started(id, request, rewinds: rewinds)
                start(id, request)
            case .abort(let id):
                guardian.aborted(id)
                drop(id)
            case .timeOut(let id): timeOut(id)
            case .authorize:
                guardian.asked()
                let isFresh = random.chance(70)
                world.after(random.milliseconds(0...3000)) { [self] in
                    world.trace("user", "credentials: \(isFresh)")
                    guardian.answered(isFresh)
                    if isFresh { session.setCredential("Bearer \(random.next())") }
                    session.authorized(isFresh, now: world.now)
                    act()
                }
            case .waitForNetwork(let id): guardian.waits(id)
            case .finish(let id, let outcome): guardian.finished(id, outcome)
            }
        }
        isActing = false
        guardian.checkQueue()
        arm()
    }

    private static func text(_ action: RESTSession.Action) -> String {
        switch action {
        case .start(let id, let request, let isFresh, let rewinds):
            "start \(id) \(request.method) \(request.url.text) fresh \(isFresh) rewinds \(rewinds)"
        case .abort(let id): "abort \(id)"
        case .timeOut(let id): "time out \(id)"
        case .authorize: "authorize"
        case .waitForNetwork(let id): "\(id) waits for a network"
        case .finish(let id, let outcome):
            "finish \(id) after \(outcome.attempts): \(outcome.error?.message ?? "ok")"
        }
    }

    private func arm() {
        alarm?.cancel()
        alarm = nil
        guard let time = session.wakeUp else { return }
        alarm = world.at(time) { [self] in
            session.timeReached(world.now)
            act()
        }
    }

    // MARK: Exchanges

    private func drop(_ id: RESTSession.ID) {
        for alarm in exchanges.removeValue(forKey: id) ?? [] { alarm.cancel() }
    }

    private func timeOut(_ id: RESTSession.ID) {
        guardian.timedOut(id)
        drop(id)
        let failure = HTTPFailure(
            RealtimeError(.timeout, "no answer in time"), precedesRequest: random.chance(20))
        ended(id, failure)
    }

    private func start(_ id: RESTSession.ID, _ request: HTTPRequest) {
        let fate = RESTFate.draw(plan, isOnline: isReachable(request.url), &random)
        world.trace("server", "\(id): \(fate)")
        if case .stream = request.body, random.chance(70) {
            session.bodyUsed(id)
            guardian.bodyUsed(id)
        }
        let upload = upload(id, request)
        switch fate {
        case .hangs:
            exchanges[id, default: []] += []
            // An attempt without a time limit ends eventually.
            later(id, .seconds(120)) { [self] in
                ended(id, HTTPFailure(RealtimeError(.connectionLost, "gone")))
            }
        case .fails(let failure, let time):
            later(id, upload + time) { [self] in ended(id, failure) }
        case .answers(let status, let fields, let time, let body, let breaks):
            later(id, upload + time) { [self] in
                let head = ResponseHead(status: status, fields: fields)
                guardian.answered(id, head)
                let reception = session.received(
                    head, of: id, now: world.now, wallClock: 1_700_000_000, random: uniform())
                guardian.received(id, reception)
                act()
                guard exchanges[id] != nil else { return }
                if reception == .deliver, !plan.isGentle, moreRandom.chance(50) {
                    answer(id, pieces: moreRandom.within(1...20), breaks)
                } else {
                    later(id, body) { [self] in end(id, breaks) }
                }
            }
        }
    }

    private func end(_ id: RESTSession.ID, _ breaks: Bool) {
        let code: RealtimeError.Code = moreRandom.chance(30) ? .protocolViolation : .connectionLost
        let broken = HTTPFailure(RealtimeError(code, "broke off"))
        ended(id, breaks ? broken : nil)
    }

    /// A body that comes in pieces; sometimes the user does not read it for a while.
    private func answer(_ id: RESTSession.ID, pieces: Int, _ breaks: Bool) {
        guard pieces > 0 else { return end(id, breaks) }
        later(id, moreRandom.milliseconds(0...moreRandom.pick([100, 2000, 6000]))) { [self] in
            session.receivedBytes(of: id, now: world.now)
            guardian.received(id)
            let holds = guardian.streamsAnswer(id) && moreRandom.chance(5)
            guard holds else { return answer(id, pieces: pieces - 1, breaks) }
            session.setHeld(id, true, now: world.now)
            guardian.held(id, true)
            later(id, moreRandom.milliseconds(0...15_000)) { [self] in
                session.setHeld(id, false, now: world.now)
                guardian.held(id, false)
                answer(id, pieces: pieces - 1, breaks)
            }
        }
    }

    /// A request's body that takes some time.
    /// - Returns: how long.
    private func upload(_ id: RESTSession.ID, _ request: HTTPRequest) -> Duration {
        guard case .stream = request.body, !plan.isGentle, moreRandom.chance(50) else {
            return .zero
        }
        var time = Duration.zero
        for _ in 0..<moreRandom.within(1...15) {
            time += moreRandom.milliseconds(0...moreRandom.pick([100, 1500]))
            later(id, time) { [self] in
                session.sent(id, now: world.now)
                guardian.moved(id)
            }
        }
        return time
    }

    private func later(
        _ id: RESTSession.ID, _ time: Duration, _ body: @escaping () -> Void
    ) {
        exchanges[id, default: []].append(world.after(time, body))
    }

    private func ended(_ id: RESTSession.ID, _ failure: HTTPFailure?) {
        exchanges[id] = nil
        guardian.ended(id, failure)
        session.ended(id, failure, now: world.now, random: uniform())
        act()
    }
}
