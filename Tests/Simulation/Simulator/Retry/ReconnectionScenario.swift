import Session
import Wire

/// Connections that fail, are refused, open and end: when the next attempt comes, and when there is
/// none. The delays must match the formulas of `Jitter`, as documented in the C interface.
package enum ReconnectionScenario: Scenario {
    package static let name = "reconnection"

    package static var situations: [String] {
        [
            "gave up at the limit", "gave up for good", "asked to wait", "stable",
            "ended before it was stable", "reached the maximum", "none", "equal", "full",
            "decorrelated", "waited for the network", "began without a network",
            "the network came back", "the network went while waiting",
        ]
    }

    package static func run(in world: World) {
        do throws(RealtimeError) {
            let run = try ReconnectionRun(world)
            run.attempt()
            world.run(until: world.now + .seconds(30 * 86_400))
            world.require(run.isOver, "neither given up nor tried again")
        } catch {
            world.fail("the options are refused: \(error)")
        }
    }
}

private final class ReconnectionRun {
    private let world: World
    private var random: Random
    private var options = BackoffConfiguration()
    private var configuration: WebSocketConfiguration
    private var life = WebSocketLife()
    private var attempts = 0
    /// Failures in a row, by this file's own count.
    private var failures = 0
    /// The delay that the server asked for.
    private var notBefore = Instant(nanoseconds: 0)
    /// The last delay, in seconds.
    private var previous = 0.0
    private(set) var isOver = false

    private enum Outcome {
        /// No connection, or a refusal that may be temporary.
        case fails(RealtimeError)
        case refusedForGood(RealtimeError)
        case asksToWait(RealtimeError, seconds: Int)
        /// It opens, lasts, and ends with this close code from the peer; nil for none.
        case opens(Duration, CloseCode?, isFinal: Bool)
    }

    init(_ world: World) throws(RealtimeError) {
        self.world = world
        random = world.random.split()
        options.initial = random.milliseconds(0...5000)
        options.factor = Double(random.within(10...60)) / 10
        options.maximum = random.milliseconds(0...60_000)
        options.jitter = random.pick([.none, .equal, .full, .decorrelated])
        options.attemptLimit = random.pick([0, 0, 1, 3, 20])
        options.stableTime = random.milliseconds(0...20_000)
        configuration = try WebSocketConfiguration(url: "ws://peer.test/")
        configuration.reconnect = options
        world.count("\(options.jitter)")
        world.trace("plan", "\(options)")
    }

    func attempt() {
        let isReachable = !random.chance(6)
        guard life.begin(configuration, isReachable: isReachable, now: world.now) else {
            world.count("began without a network")
            world.require(!isReachable, "waits for a network that is there")
            requireReport(of: true)
            notBefore = world.now
            return wait(isOnline: false)
        }
        world.require(isReachable, "an attempt without a network")
        attempts += 1
        let outcome = draw()
        world.trace("attempt \(attempts)", "\(outcome)")
        guard attempts <= 60 else { return isOver = true }
        switch outcome {
        case .fails(let error): ended(nil, error, least: .zero)
        case .refusedForGood(let error): ended(nil, error, least: nil)
        case .asksToWait(let error, let seconds):
            world.count("asked to wait")
            ended(nil, error, least: .seconds(min(seconds, 300)))
        case .opens(let time, let code, let isFinal):
            open()
            world.after(time) { [self] in
                let isStable = time >= options.stableTime
                world.count(isStable ? "stable" : "ended before it was stable")
                if isStable { failures = 0 }
                let lost = RealtimeError(.connectionLost, "lost")
                ended(code, code == nil ? lost : nil, least: isFinal ? nil : .zero)
            }
        }
    }

    /// The server accepts the connection.
    private func open() {
        life.connected(configuration, nonce: [UInt8](repeating: 0, count: 16), now: world.now)
        let answer =
            "HTTP/1.1 101 Welcome\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Accept: ICX+Yqv66kxgM0FcWaLWlFLwTAI=\r\n\r\n"
        let heard = Array(answer.utf8).withUnsafeBytes {
            life.received($0, configuration, now: world.now)
        }
        if case .open = heard { return }
        world.fail("does not open: \(heard)")
    }

    private func waited() {
        switch life.timeReached(world.now, configuration, isReachable: true) {
        case .attempt(let number):
            world.require(number == failures, "asks for attempt \(number), it is \(failures)")
            world.require(life.endWait(continues: true), "does not continue")
            attempt()
        case let other: world.fail("\(other) instead of an attempt")
        }
    }

    private var wakeUp: Instant? { life.wakeUp(session: nil) }

    /// Each wait for a network is reported once.
    private func requireReport(of isWait: Bool) {
        world.require(
            (life.noteWait(configuration) != nil) == isWait, "reports a wait, or does not")
        world.require(life.noteWait(configuration) == nil, "reports a wait again")
    }

    private func uniform() -> Double { Double(random.next() >> 11) * 0x1p-53 }

    private func draw() -> Outcome {
        switch random.below(20) {
        case 0:
            return .refusedForGood(refusal(random.pick([400, 401, 403, 404, 410]), []))
        case 1...3:
            let seconds = random.pick([0, 1, 7, 120, 1_000_000])
            let field = HeaderField(name: "Retry-After", value: String(seconds))
            return .asksToWait(
                refusal(random.pick([408, 425, 429, 503]), [field]), seconds: seconds)
        case 4...9:
            let isFinal = random.chance(8)
            let codes: [CloseCode?] =
                isFinal
                ? [
                    .normal, .protocolError, .unsupportedData, .invalidPayload, .policyViolation,
                    .messageTooBig, .extensionRequired,
                ]
                : [nil, .goingAway, .noStatus, .internalError, CloseCode(rawValue: 3001)]
            return .opens(random.milliseconds(0...40_000), random.pick(codes), isFinal: isFinal)
        default:
            let codes: [RealtimeError.Code] = [.connect, .timeout, .tls, .resolve, .connectionLost]
            let code = random.pick(codes)
            return .fails(RealtimeError(code, "failed"))
        }
    }

    private func refusal(_ status: Int, _ fields: [HeaderField]) -> RealtimeError {
        let head = ResponseHead(status: status, fields: fields)
        return RealtimeError(
            .httpStatus, "refused", response: HTTPResponse(head, body: []))
    }

    /// - Parameter least: the delay that the server asked for; nil if no attempt may follow.
    private func ended(_ code: CloseCode?, _ error: RealtimeError?, least: Duration?) {
        let isReachable = !random.chance(6)
        if let error { life.failed(error) }
        if let code { life.closed(by: code, "") }
        let next = life.finish(
            life.ending, isWanted: true, isReachable: isReachable, now: world.now, wallClock: 0,
            random: uniform())
        world.trace("attempt \(attempts)", "\(next)")
        notBefore = world.now + (least ?? .zero)
        if case .wait(nil, let number) = next {
            world.count("waited for the network")
            world.require(!isReachable, "waits for a network that is there")
            world.require(least != nil, "waits to retry although it never can")
            world.require(number == failures, "counts \(number), it is \(failures)")
            // The failure has reported it.
            requireReport(of: false)
            return wait(isOnline: false)
        }
        world.require(isReachable || least == nil, "tries without a network")
        let isExhausted = options.attemptLimit > 0 && failures >= options.attemptLimit
        guard case .wait(let delay?, let number) = next else {
            world.require(least == nil || isExhausted, "gave up with no reason")
            world.count(least == nil ? "gave up for good" : "gave up at the limit")
            return isOver = true
        }
        guard let least else { return world.fail("retries although it never can") }
        world.require(!isExhausted, "tries again beyond the limit")
        failures += 1
        world.require(number == failures, "calls it attempt \(number), it is \(failures)")
        check(delay, least)
        wait(isOnline: true)
    }

    /// The network comes and goes meanwhile, a few times at most. Without it no attempt is made;
    /// when it is back, the attempt follows within a second, or when the server wants it.
    private func wait(isOnline: Bool, flaps: Int = 0) {
        let before = wakeUp
        world.require(isOnline == (before != nil), "due at \(String(describing: before))")
        let change = world.now + random.milliseconds(0...60_000)
        if let before, before <= change || flaps >= 3 {
            world.after(before - world.now) { [self] in waited() }
            return
        }
        world.after(change - world.now) { [self] in
            world.count(isOnline ? "the network went while waiting" : "the network came back")
            let uniform = uniform()
            world.require(
                !life.setOnline(isOnline, now: world.now, random: uniform),
                "setting the same again counts as a change")
            world.require(
                life.setOnline(!isOnline, now: world.now, random: uniform), "no change")
            requireReport(of: isOnline)
            if !isOnline, let due = wakeUp {
                world.require(due >= notBefore, "due before the server wants it")
                let latest = max(world.now + .seconds(1), notBefore)
                world.require(due <= latest, "due at \(due), it is \(world.now)")
            }
            wait(isOnline: !isOnline, flaps: flaps + 1)
        }
    }

    private func check(_ delay: Duration, _ least: Duration) {
        let maximum = options.maximum / .seconds(1)
        let initial = min(options.initial / .seconds(1), maximum)
        var base = initial
        for _ in 1..<failures { base = min(base * options.factor, maximum) }
        if base == maximum { world.count("reached the maximum") }
        let range =
            switch options.jitter {
            case .none: base...base
            case .equal: (base / 2)...base
            case .full: 0...base
            case .decorrelated:
                initial...min(maximum, max(initial, 3 * (failures == 1 ? initial : previous)))
            }
        let floor = least / .seconds(1)
        let seconds = delay / .seconds(1)
        previous = seconds
        // For rounding to nanoseconds.
        let slack = 1e-6
        world.require(
            seconds >= max(range.lowerBound, floor) - slack
                && seconds <= max(range.upperBound, floor) + slack,
            "waits \(seconds) s, \(options.jitter) allows \(range), the server asks \(floor)")
    }
}
