import Testing
import Wire

@testable import Session

/// The result of a poll, in a form that can be compared.
enum Came: Equatable {
    case message
    case nothing
    case failed(RealtimeError.Code, retryIn: Duration?, isFatal: Bool)

    init(_ outcome: LongPollSession.Outcome) {
        switch outcome {
        case .message: self = .message
        case .nothing: self = .nothing
        case .failed(let failure):
            self = .failed(
                failure.error.code, retryIn: failure.retryIn, isFatal: failure.isFatal)
        }
    }
}

/// A session with a clock, and helpers that answer it.
struct Poller {
    var configuration: LongPollConfiguration
    var session: LongPollSession
    var now = Instant(nanoseconds: 1_000_000_000_000)
    var random = 0.0

    init(
        _ change: (inout LongPollConfiguration) throws -> Void = { _ in }
    ) throws {
        configuration = try LongPollConfiguration(url: "http://example.com/poll?a=b")
        try change(&configuration)
        session = try LongPollSession(configuration)
        session.start(now: now)
    }

    /// How long until the session's next deadline.
    var wait: Duration? { session.wakeUp.map { $0 - now } }

    /// Waits for the time of the next poll, and begins it.
    mutating func begin() {
        if let due = session.wakeUp { now = max(now, due) }
        guard case .begin = session.timeReached(now, requestStarted: nil, random: random) else {
            Issue.record("no poll is due")
            return
        }
        session.beginAttempt(configuration, now: now)
    }

    /// Polls, and answers after a while.
    /// - Parameter body: the size of the answer.
    mutating func answer(
        _ status: Int, _ fields: [(String, String)] = [], body: Int = 0,
        after hold: Duration = .zero
    ) throws -> Came {
        begin()
        return try reply(status, fields, body: body, after: hold)
    }

    /// Polls, delivers the message, and returns how long the next poll waits.
    mutating func message(
        _ text: String, _ fields: [(String, String)] = [], after hold: Duration = .zero
    ) throws -> Duration? {
        begin()
        #expect(try reply(200, fields, text: text, after: hold) == .message)
        session.delivered(now: now)
        return wait
    }

    mutating func reply(
        _ status: Int, _ fields: [(String, String)] = [], body: Int = 0, text: String? = nil,
        after hold: Duration = .zero
    ) throws -> Came {
        let start = now
        now = now + hold
        let head = ResponseHead(
            status: status, fields: fields.map { HeaderField(name: $0.0, value: $0.1) })
        let answer = session.received(
            head, requestStarted: start, canAuthorize: false, now: now)
        switch answer {
        case .read: break
        case .failed(let failure): return Came(.failed(failure))
        case .again, .unauthorized: Issue.record("\(answer)")
        }
        if body > 0 { _ = try session.received(body, now: now) }
        // A body may arrive in any pieces.
        for byte in (text ?? "").utf8 { _ = try session.received([byte], now: now) }
        return Came(session.ended(nil, now: now, wallClock: 784_111_777, random: random))
    }

    func header(_ name: String) -> String? { session.request.values(name).first }
}

extension LongPollSession {
    mutating func received(_ bytes: [UInt8], now: Instant) throws(RealtimeError) -> Bool {
        let result = bytes.withUnsafeBytes { bytes in
            Result { () throws(RealtimeError) in try received(bytes, now: now) }
        }
        return try result.get()
    }

    /// Receives this many equal bytes.
    mutating func received(_ count: Int, now: Instant) throws(RealtimeError) -> Bool {
        try received([UInt8](repeating: 0x78, count: count), now: now)
    }
}

let polledDate = "Sun, 06 Nov 1994 08:49:37 GMT"
let polledValidators = [("Last-Modified", polledDate), ("Etag", "0,[1]")]
