import Session
import Wire

/// An event source against a scripted server. Attempts fail, stall, are refused, redirected and cut
/// anywhere; the network comes and goes; a user restarts and closes. Each event must come once and
/// in order, delays follow rule C9, and nothing happens without a network or after the end. One run
/// in eight is a storm: a server that wants to be asked as often as possible. Requests always stay
/// below a ceiling.
package enum EventSourceScenario: Scenario {
    package static let name = "eventsource"

    package static var situations: [String] {
        [
            "all delivered", "cut inside an event", "ended in order", "refused and retried",
            "fatal refusal", "redirected", "no answer in time", "silent for too long",
            "credentials given", "credentials refused", "waited for the network", "restarted",
            "closed", "reconnects exhausted", "told not to reconnect", "longer delays",
            "server's retry", "polled", "storm", "storm refused", "ceiling reached",
        ]
    }

    package static func run(in world: World) {
        do throws(RealtimeError) {
            // From its own randomness, so that other runs draw the same as before there were
            // storms.
            var random = Random(seed: ~world.seed)
            if random.below(8) == 0 {
                try EventStorm(world, random.split()).run()
                return world.run(until: world.now + .seconds(1000))
            }
            var plan = EventPlan(&world.random)
            plan.reconnects = !random.chance(10)
            let client = try EventClient(world, plan, EventServer(plan, world.random.split()))
            client.start()
            world.run(until: world.now + .seconds(30 * 86_400))
            client.check()
        } catch {
            world.fail("the options are refused: \(error)")
        }
    }
}

/// Everything that defines one run, drawn before it starts.
struct EventPlan {
    /// The data of the events; the n-th has the id n + 1.
    let events: [String]
    let hasFaults: Bool
    /// After this many attempts the server has no more faults.
    let faultyAttempts: Int
    let needsToken: Bool
    let givesToken: Bool
    let reconnectionTime: Duration
    let maxDelay: Duration
    let maxReconnects: Int
    let responseTimeout: Duration
    let idleTimeout: Duration
    /// When the network goes and returns, alternately.
    let flaps: [Duration]
    let restarts: [Duration]
    let closesAt: Duration?
    let minReconnectionTime: Duration
    /// Drawn later, so that older seeds draw the same.
    var reconnects = true

    init(_ random: inout Random) {
        let texts = ["", "x", "two\nlines", "\n", " blank", "é🐎", "\u{2028}", "a:b", "data: no"]
        events = (0..<random.within(1...40)).map { _ in random.pick(texts) }
        hasFaults = random.chance(70)
        faultyAttempts = random.within(1...25)
        needsToken = random.chance(15)
        givesToken = random.chance(80)
        reconnectionTime = random.milliseconds(0...5000)
        maxDelay = random.milliseconds(1000...60_000)
        maxReconnects = random.pick([0, 0, 0, 3])
        responseTimeout = random.pick([.seconds(30), .seconds(2)])
        idleTimeout = random.pick([.zero, .seconds(10)])
        var flaps: [Duration] = []
        if hasFaults, random.chance(40) {
            var time = Duration.zero
            for _ in 0..<(2 * random.within(1...3)) {
                time += random.milliseconds(1...60_000)
                flaps.append(time)
            }
        }
        self.flaps = flaps
        restarts = random.chance(30) ? [random.milliseconds(0...30_000)] : []
        closesAt = random.chance(10) ? random.milliseconds(0...60_000) : nil
        minReconnectionTime = random.pick([.milliseconds(500), .zero, .seconds(2)])
    }
}

/// What the server does with one request.
enum EventAnswer {
    case unreachable
    case silent
    case status(Int, [HeaderField])
    /// Bytes, each some time after the one before, and how the stream ends; nil if it does not end.
    case stream([(Duration, [UInt8])], end: HTTPFailure??)
}

/// A server that sends the events after the id in the request.
struct EventServer {
    private let plan: EventPlan
    private var random: Random
    private var attempts = 0

    init(_ plan: EventPlan, _ random: Random) {
        self.plan = plan
        self.random = random
    }

    mutating func answer(_ request: HTTPRequest, _ world: World) -> EventAnswer {
        attempts += 1
        if plan.needsToken, request.values("Authorization") != ["Bearer good"] {
            return .status(401, [])
        }
        let isFaulty = plan.hasFaults && attempts <= plan.faultyAttempts
        if isFaulty, request.url.target == "/events" {
            switch random.below(20) {
            case 0...3: return .unreachable
            case 4: return .silent
            case 5...7:
                world.count("refused and retried")
                let wish = random.pick(["", "3", "100000", "soon"])
                let fields = wish.isEmpty ? [] : [HeaderField(name: "Retry-After", value: wish)]
                return .status(random.pick([429, 503]), fields)
            case 8...9:
                let location = random.pick(["/elsewhere", "http://b.test/elsewhere"])
                return .status(
                    random.pick([301, 302, 303, 307, 308]),
                    [HeaderField(name: "Location", value: location)])
            case 10 where random.chance(20): return .status(random.pick([204, 404, 500]), [])
            default: break
            }
        }
        let last = request.values("Last-Event-ID").first.flatMap { Int($0) } ?? 0
        return stream(after: last, isFaulty, world)
    }

    private mutating func stream(after last: Int, _ isFaulty: Bool, _ world: World) -> EventAnswer {
        var bytes: [UInt8] = random.chance(20) ? [0xEF, 0xBB, 0xBF] : []
        // An empty block discards an unfinished event of the older stream.
        if random.chance(50) {
            bytes += Array(random.pick([": hi\n\n", "\n", "event: x\n\n"]).utf8)
        }
        for index in last..<max(last, plan.events.count) {
            bytes += event(index, isFaulty, world)
        }
        var end: HTTPFailure?? = .none
        if isFaulty || random.chance(10) {
            let cut = random.below(bytes.count + 1)
            if random.chance(60) {
                bytes.removeLast(bytes.count - cut)
                world.count("cut inside an event")
            }
            if plan.idleTimeout == .zero || random.chance(50) {
                let failure = HTTPFailure(RealtimeError(.connectionLost, "cut"))
                let isCut = random.chance(50)
                if !isCut { world.count("ended in order") }
                end = .some(isCut ? failure : nil)
            }
        }
        var chunks: [(Duration, [UInt8])] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = min(rest.count, random.pick([1, 2, 3, 7, 50, 5000]))
            let pause = random.milliseconds(0...(random.chance(2) ? 8000 : 20))
            chunks.append((pause, Array(rest.prefix(count))))
            rest = rest.dropFirst(count)
        }
        return .stream(chunks, end: end)
    }

    private mutating func event(_ index: Int, _ isFaulty: Bool, _ world: World) -> [UInt8] {
        let lineEnd = random.pick(["\n", "\r\n", "\r"])
        var lines = ["id: \(index + 1)"]
        if random.chance(30) { lines.insert(": a comment", at: 0) }
        if isFaulty, random.chance(10) {
            world.count("server's retry")
            lines.append("retry: \(random.pick(["0", "10", "700", "bogus", "007000"]))")
        }
        if random.chance(20) { lines.append("unknown: field") }
        lines += plan.events[index].split(separator: "\n", omittingEmptySubsequences: false)
            .map { "data: \($0)" }
        lines.append("")
        return Array((lines.joined(separator: lineEnd) + lineEnd).utf8)
    }
}
