import Session
import Wire

/// What a server does with one poll.
enum PollAnswer {
    /// A whole answer after a while.
    case whole(ResponseHead, body: Int, after: Duration)
    /// A head, part of the body, then the connection ends or stays silent.
    case partly(ResponseHead, body: Int, after: Duration, stops: Bool)
    /// A whole answer whose body does not have the form that its type promises.
    case malformed(ResponseHead, after: Duration)
    /// The connection ends without an answer.
    case lost(after: Duration)
    /// Nothing, ever.
    case silent
}

/// A server of numbered messages. Its answers are drawn; the cursor, which it reads itself, says
/// which message they contain.
final class PollServer {
    private let world: World
    private var random: Random
    /// For later additions, so that older seeds keep their meaning.
    private var own: Random
    let mode: LongPollCursorMode
    /// Seconds since 1970 of the first message's Last-Modified.
    private let epoch: Int64 = 1_700_000_000
    /// Messages by number; those before `first` are forgotten.
    private(set) var count = 0
    private(set) var first = 0
    /// How long a poll is held without a message; zero for a server that does not hold.
    private let hold: Duration
    private let faultChance: Int
    /// It has mainly one fault: it answers at once, with nothing.
    private let isHasty: Bool
    /// Faults end, so that everything can arrive.
    var isFaulty = true
    private var waiting: (() -> Void)?

    init(_ world: World) {
        self.world = world
        random = world.random.split()
        var more = Random(seed: ~world.seed)
        own = more.split()
        mode = random.pick([.validators, .headerID, .queryID])
        hold = random.pick([.zero, .seconds(2), .seconds(20)])
        isHasty = random.chance(10)
        faultChance = isHasty ? 60 : random.pick([0, 10, 40])
        world.count("\(mode)")
    }

    /// Publishes a message, again and again.
    func publish(_ left: Int) {
        guard left > 0 else { return isFaulty = false }
        world.after(random.milliseconds(0...random.pick([10, 1000, 6000]))) { [self] in
            count += 1
            let held = waiting
            waiting = nil
            held?()
            publish(left - 1)
        }
    }

    /// The message that the request asks for; nil if the cursor is not one that this server sent.
    func wanted(_ request: HTTPRequest) -> Int? {
        switch mode {
        case .validators:
            guard let tag = request.values("If-None-Match").first else { return first }
            guard let number = Int(tag.dropFirst()), tag.hasPrefix("#") else { return nil }
            let date = formatHTTPDate(epoch + Int64(number))
            return request.values("If-Modified-Since") == [date] ? number + 1 : nil
        case .headerID:
            return number(request.values("Last-Event-ID").first)
        case .queryID:
            let parts = request.url.text.split(separator: "last_event_id=")
            guard parts.count == 2 else { return first }
            let id = parts[1].split(separator: "%3A").joined(separator: ":")
            return number(id.split(separator: "%23").joined(separator: "#"))
        case .none: return nil
        }
    }

    private func number(_ id: String?) -> Int? {
        guard let id else { return first }
        let parts = id.split(separator: ":")
        guard parts.count == 2, let seconds = Int64(parts[0]),
            let number = Int(parts[1].dropFirst()),
            seconds == epoch + Int64(number)
        else { return nil }
        return number + 1
    }

    /// The message after the cursor in an answer; nil if the answer has no cursor.
    func next(_ head: ResponseHead) -> Int? {
        head.values("ETag").first.flatMap { Int($0.dropFirst()) }.map { $0 + 1 }
    }

    /// Answers a poll for this message, at once or once it is there.
    func answer(_ wanted: Int, _ reply: @escaping (PollAnswer) -> Void) {
        if isFaulty, random.chance(faultChance) { return reply(fault(wanted)) }
        guard wanted >= count else { return reply(message(wanted)) }
        if hold == .zero { return reply(nothing(after: random.milliseconds(0...50))) }
        var alarm: World.Alarm?
        alarm = world.after(hold) { [self] in
            waiting = nil
            reply(nothing(after: .zero))
        }
        waiting = { [self] in
            alarm?.cancel()
            reply(message(wanted))
        }
    }

    /// Whether the request has no cursor.
    func beginsAnew(_ request: HTTPRequest) -> Bool {
        let names = ["If-None-Match", "If-Modified-Since", "Last-Event-ID"]
        return names.allSatisfy { request.values($0).isEmpty } && !request.url.text.contains("?")
    }

    /// The client has disconnected.
    func forget() { waiting = nil }

    private func message(_ wanted: Int) -> PollAnswer {
        let isBatch = random.chance(20)
        let last = isBatch ? min(count - 1, wanted + random.within(0...3)) : wanted
        world.count(last > wanted ? "batch" : "message")
        return .whole(head(200, last), body: last - wanted + 1, after: random.milliseconds(0...200))
    }

    private func nothing(after delay: Duration) -> PollAnswer {
        .whole(head(random.pick([204, 304, 408, 504]), nil), body: 0, after: delay)
    }

    private func head(
        _ status: Int, _ last: Int?, _ fields: [HeaderField] = []
    ) -> ResponseHead {
        var fields = fields
        if let last {
            fields.append(
                HeaderField(name: "Last-Modified", value: formatHTTPDate(epoch + Int64(last))))
            fields.append(HeaderField(name: "Etag", value: "#\(last)"))
        }
        return ResponseHead(status: status, fields: fields)
    }

    private func fault(_ wanted: Int) -> PollAnswer {
        let delay = random.milliseconds(0...2000)
        switch isHasty ? 0 : random.below(8) {
        case 0:
            world.count("empty 200")
            // The message may have been withdrawn: there is nothing up to a later id.
            let isWithdrawn = wanted < count && own.chance(30)
            if isWithdrawn { world.count("withdrawn") }
            let place = isWithdrawn ? wanted : nil
            return .whole(head(200, place), body: 0, after: random.milliseconds(0...150))
        case 1:
            world.count("refused")
            return .whole(head(random.pick([429, 500, 502, 503]), nil), body: 3, after: delay)
        case 2:
            world.count("asked to wait")
            let seconds = String(random.pick([0, 1, 40, 1_000_000]))
            let field = HeaderField(name: "Retry-After", value: seconds)
            return .whole(head(503, nil, [field]), body: 0, after: delay)
        case 3 where own.chance(30):
            world.count("malformed")
            return .malformed(head(200, count), after: delay)
        case 3:
            world.count("cut")
            return .partly(head(200, count), body: 2, after: delay, stops: false)
        case 4:
            world.count("stopped in the middle")
            return .partly(head(200, count), body: 2, after: delay, stops: true)
        case 5:
            world.count("lost")
            return .lost(after: delay)
        case 6:
            world.count("silent")
            return .silent
        default:
            world.count("gone")
            first = count
            return .whole(head(410, nil), body: 0, after: delay)
        }
    }
}
