import Session
import Testing
import Wire

/// Drives a session by hand.
struct EventSourceDriver {
    var session: EventSourceSession
    let configuration: EventSourceConfiguration
    static let start = Instant(nanoseconds: 1_000_000_000)
    var now = EventSourceDriver.start
    var random = 0.0

    init(_ configuration: EventSourceConfiguration, id: String = "") {
        self.configuration = configuration
        session = EventSourceSession(configuration, lastEventID: id)
        session.start(now: now)
    }

    mutating func begin() {
        guard let due = session.wakeUp else {
            Issue.record("no attempt is due")
            return
        }
        now = max(now, due)
        let event = session.timeReached(now, requestStarted: nil, random: random)
        guard case .begin = event else {
            Issue.record("\(event) instead of an attempt")
            return
        }
        session.beginAttempt(configuration, now: now)
    }

    mutating func answer(
        _ head: ResponseHead, canAuthorize: Bool = false, wallClock: Int64 = 0
    ) -> EventSourceSession.Answer {
        session.received(
            head, canAuthorize: canAuthorize, now: now, wallClock: wallClock, random: random)
    }

    mutating func end(_ failure: HTTPFailure? = nil) -> HTTPSourceFailure {
        session.ended(failure, now: now, random: random)
    }
}
