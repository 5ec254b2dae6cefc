import Session
import Wire

/// Everything that defines one run of the REST scenario, drawn before it starts.
struct RESTPlan {
    struct Request {
        var at: Duration
        var method: String
        var host: String
        var policy: RESTPolicy
        /// With an Idempotency-Key set by the caller.
        var isKeyed: Bool
        var streamsAnswer: Bool
        /// A body from a callback, and whether it can be read again.
        var streamsBody: Bool
        var canRewind: Bool
        var cancelAt: Duration?

        /// By this file's own reading of R11.
        var isOrdered: Bool {
            switch policy.order {
            case .automatic: !["GET", "HEAD"].contains(method)
            case .always: true
            case .never: false
            }
        }

        /// By this file's own reading of R3.
        var mayRepeat: Bool {
            !["POST", "PATCH"].contains(method) || isKeyed || policy.addsIdempotencyKey
        }
    }

    var requests: [Request] = []
    /// When the network goes and returns, alternately.
    var flaps: [Duration] = []
    var closeAt: Duration?
    var configuration = RESTConfiguration()
    /// The program answers a 401 with new credentials.
    var renews: Bool
    /// No faults, and no changes of the network: every request ends with its response.
    let isGentle: Bool
    /// The chance that an exchange fails in some way, in percent.
    let trouble: Int

    /// Reachable without a network.
    static let loopback = "127.0.0.1"

    init(_ random: inout Random) {
        isGentle = random.chance(20)
        trouble = isGentle ? 0 : random.pick([10, 40, 80])
        renews = random.chance(50)
        configuration.queueCapacity = random.pick([0, 1, 3, 100])
        configuration.overflow = random.chance(50) ? .dropOldest : .rejectNew
        configuration.perHost = random.pick([1, 2, 6])
        if isGentle { configuration.queueCapacity = 1000 }
        let count = random.pick([1, 5, 20, 60])
        let span = random.pick([0, 1000, 60_000])
        for _ in 0..<count { requests.append(request(&random, span)) }
        requests.sort { $0.at < $1.at }
        guard !isGentle else { return }
        if random.chance(60) {
            var time = Duration.zero
            for _ in 0..<random.within(1...8) {
                time += random.milliseconds(0...random.pick([200, 5000, 40_000]))
                flaps.append(time)
            }
        }
        if random.chance(15) { closeAt = random.milliseconds(0...60_000) }
    }

    /// Later additions, drawn from separate randomness so that older seeds keep their meaning.
    mutating func drawMore(_ random: inout Random) {
        for index in requests.indices {
            requests[index].policy.needsHeadAlone = random.chance(10)
        }
        // So few that some requests exceed them.
        for index in requests.indices where requests[index].policy.redirects.maximum == 2 {
            requests[index].policy.redirects.maximum = random.pick([1, 2])
        }
        for index in requests.indices where random.chance(30) {
            requests[index].policy.isOfRequest = true
            requests[index].policy.deadline = requests[index].policy.deadline
        }
    }

    private func request(_ random: inout Random, _ span: Int) -> Request {
        var policy = RESTPolicy()
        policy.attempts = random.pick([1, 2, 3, 3, 5])
        policy.backoff.initial = random.milliseconds(0...3000)
        policy.backoff.factor = random.pick([1, 2, 2, 5])
        policy.backoff.maximum = random.milliseconds(0...10_000)
        policy.attemptTimeout = random.pick([.zero, .seconds(1), .seconds(5), .seconds(5)])
        policy.deadline = random.pick([.zero, .seconds(3), .seconds(30), .seconds(30)])
        policy.retryAfterLimit = random.pick([.zero, .seconds(5), .seconds(60)])
        policy.queueTime = random.pick([.zero, .zero, .seconds(2), .seconds(20)])
        policy.order = random.pick([.automatic, .automatic, .always, .never])
        policy.addsIdempotencyKey = random.chance(20)
        policy.retriesUnsafe = random.chance(10)
        policy.redirects.maximum = random.pick([0, 2, 20])
        if isGentle {
            policy.deadline = .zero
            policy.queueTime = .zero
            policy.attemptTimeout = .zero
        }
        let streamsBody = random.chance(10)
        return Request(
            at: random.milliseconds(0...max(1, span)),
            method: random.pick(["GET", "GET", "GET", "HEAD", "POST", "POST", "PUT", "PATCH"]),
            host: random.pick(["a", "a", "b", RESTPlan.loopback]), policy: policy,
            isKeyed: random.chance(10), streamsAnswer: random.chance(15),
            streamsBody: streamsBody, canRewind: random.chance(50),
            cancelAt: !isGentle && random.chance(10) ? random.milliseconds(0...10_000) : nil)
    }
}

/// What the server, or the network, does with one exchange.
enum RESTFate {
    /// An answer after some time, and its body after some more; the body may break off.
    case answers(Int, [HeaderField], after: Duration, body: Duration, breaks: Bool)
    case fails(HTTPFailure, after: Duration)
    /// No answer ever comes.
    case hangs

    static func draw(_ plan: RESTPlan, isOnline: Bool, _ random: inout Random) -> RESTFate {
        let time = random.milliseconds(1...random.pick([50, 500, 4000]))
        if !isOnline, random.chance(80) {
            return .fails(failure(random.pick([.resolve, .connect]), precedes: true), after: time)
        }
        guard random.chance(plan.trouble) else {
            return .answers(
                random.pick([200, 200, 201, 204]), [], after: time,
                body: random.milliseconds(0...100), breaks: false)
        }
        switch random.below(20) {
        case 0...2: return .fails(failure(.connect, precedes: true), after: time)
        case 3: return .fails(failure(.tls, precedes: true, isFinal: true), after: time)
        case 4...6: return .fails(failure(.connectionLost, precedes: false), after: time)
        case 7: return .fails(failure(.connectionLost, precedes: false, isStale: true), after: time)
        case 8: return .hangs
        case 9:
            return .answers(
                200, [], after: time, body: random.milliseconds(0...5000), breaks: true)
        case 10...11:
            let place = random.pick(["/next", "http://b/next", ""])
            let field = HeaderField(name: "Location", value: place)
            return .answers(
                random.pick([301, 303, 307, 308]), [field], after: time,
                body: random.milliseconds(0...100), breaks: false)
        case 12: return answer(401, time, &random)
        case 13: return answer(421, time, &random)
        case 14: return answer(random.pick([400, 404, 409, 501, 505]), time, &random)
        default:
            return answer(random.pick([408, 425, 429, 500, 502, 503, 504]), time, &random)
        }
    }

    private static func answer(
        _ status: Int, _ time: Duration, _ random: inout Random
    ) -> RESTFate {
        var fields: [HeaderField] = []
        if random.chance(30) {
            let seconds = random.pick([0, 1, 4, 20, 100])
            fields = [HeaderField(name: "Retry-After", value: String(seconds))]
        }
        return .answers(
            status, fields, after: time, body: random.milliseconds(0...random.pick([10, 9000])),
            breaks: random.chance(10))
    }

    private static func failure(
        _ code: RealtimeError.Code, precedes: Bool, isFinal: Bool = false, isStale: Bool = false
    ) -> HTTPFailure {
        HTTPFailure(
            RealtimeError(code, "failed"), precedesRequest: precedes, isFinal: isFinal,
            isStale: isStale)
    }
}
