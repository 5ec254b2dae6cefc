import Session
import Testing
import Wire

private let start = EventSourceDriver.start

private func configuration(
    _ change: (inout EventSourceConfiguration) throws -> Void = { _ in }
) throws -> EventSourceConfiguration {
    var configuration = try EventSourceConfiguration(url: "http://a.test/events?x=1")
    try change(&configuration)
    return configuration
}

private func head(_ status: Int, _ fields: [(String, String)] = []) -> ResponseHead {
    ResponseHead(status: status, fields: fields.map { HeaderField(name: $0.0, value: $0.1) })
}

private let good = head(200, [("Content-Type", "text/event-stream")])
private let lost = HTTPFailure(RealtimeError(.connectionLost, "gone"))

private typealias Driver = EventSourceDriver

private func failure(_ answer: EventSourceSession.Answer) -> HTTPSourceFailure? {
    if case .failed(let failure) = answer { return failure }
    return nil
}

@Suite struct EventSourceRequestTests {
    @Test func theHeadersFollowTheStandard() throws {
        var driver = Driver(try configuration())
        driver.begin()
        let request = driver.session.request
        #expect(request.method == "GET")
        #expect(request.body == .none)
        #expect(
            request.fields == [
                HeaderField(name: "Accept", value: "text/event-stream"),
                HeaderField(name: "Cache-Control", value: "no-cache"),
            ])
    }

    @Test func theLastIDIsSent() throws {
        var driver = Driver(try configuration { $0.idQueryParameter = "x" }, id: "…é")
        driver.begin()
        #expect(driver.session.request.values("Last-Event-ID") == ["…é"])
        #expect(driver.session.request.url.target == "/events?x=%E2%80%A6%C3%A9")
        driver.session.lastEventID = ""
        _ = driver.end(lost)
        driver.begin()
        #expect(driver.session.request.values("Last-Event-ID").isEmpty)
        #expect(driver.session.request.url.target == "/events?x=1")
    }

    @Test func ownHeadersAreReplaced() throws {
        let configuration = try configuration {
            try $0.addHeader(name: "accept", value: "text/event-stream;q=0.9, */*")
            try $0.addHeader(name: "cache-control", value: "max-age=9")
            try $0.addHeader(name: "last-event-id", value: "mine")
            $0.body = [1]
        }
        var driver = Driver(configuration, id: "7")
        driver.begin()
        let request = driver.session.request
        #expect(request.values("Accept") == ["text/event-stream;q=0.9, */*"])
        #expect(request.values("Cache-Control") == ["no-cache"])
        #expect(request.values("Last-Event-ID") == ["7"])
        #expect(request.values("Content-Type") == ["text/plain; charset=utf-8"])
        #expect(request.body == .bytes([1]))
    }

    @Test(arguments: ["a\nb", "a\rb", "a\0b"])
    func badIdsAreRefused(_ id: String) {
        #expect(throws: RealtimeError.self) { try configuration { try $0.setLastEventID(id) } }
    }
}

@Suite struct EventSourceAnswerTests {
    @Test(arguments: [
        "text/event-stream", "TEXT/Event-Stream", "text/event-stream;", "text/event-stream; x=y",
        "text/event-stream;charset=windows-1252",
    ])
    func theseTypesOpen(_ type: String) throws {
        var driver = Driver(try configuration())
        driver.begin()
        guard case .open = driver.answer(head(200, [("Content-Type", type)])) else {
            Issue.record("\(type) did not open")
            return
        }
        #expect(driver.session.state == .open)
    }

    @Test(arguments: [nil, "", "text/event-streamx", "text/plain", "text/event-stream-x"])
    func otherTypesFail(_ type: String?) throws {
        var driver = Driver(try configuration())
        driver.begin()
        let told = failure(driver.answer(head(200, type.map { [("Content-Type", $0)] } ?? [])))
        #expect(told?.error.code == .contentType)
        #expect(told?.isFatal == true)
        #expect(driver.session.state == .closed)
    }

    @Test(arguments: [204, 205, 210, 299, 400, 401, 404, 410, 500, 503])
    func otherStatusesFail(_ status: Int) throws {
        var driver = Driver(try configuration())
        driver.begin()
        let told = failure(driver.answer(head(status)))
        #expect(told?.error.code == (status == 204 ? .noContent : .httpStatus))
        #expect(told?.status == status)
        #expect(told?.isFatal == true)
        #expect(driver.session.wakeUp == nil)
    }

    @Test func listedStatusesAreRetried() throws {
        var driver = Driver(try configuration { try $0.addRetryStatus(503) })
        driver.begin()
        var told = failure(driver.answer(head(503)))
        #expect(told?.isFatal == false)
        #expect(told?.retryIn == .seconds(3))
        driver.begin()
        told = failure(driver.answer(head(503, [("Retry-After", "100000")])))
        #expect(told?.retryIn == .seconds(300))
        driver.begin()
        told = failure(driver.answer(head(503, [("Retry-After", "20")])))
        #expect(told?.retryIn == .seconds(20))
    }

    @Test func credentialsAreRequestedOncePerAttempt() throws {
        var driver = Driver(try configuration())
        driver.begin()
        guard case .unauthorized = driver.answer(head(401), canAuthorize: true) else {
            Issue.record("nobody was asked")
            return
        }
        // Until they arrive, a restart must not repeat the refused request.
        driver.session.restart(now: driver.now)
        #expect(driver.session.isAuthorizing)
        #expect(driver.session.wakeUp == nil)
        var fresh = driver.configuration
        try fresh.setHeader(name: "Authorization", value: "Bearer new")
        driver.session.authorized(fresh, now: driver.now)
        #expect(driver.session.request.values("Authorization") == ["Bearer new"])
        let told = failure(driver.answer(head(401), canAuthorize: true))
        #expect(told?.isFatal == true)
        #expect(told?.status == 401)
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func redirectsAreFollowedAndForgotten(_ status: Int) throws {
        var driver = Driver(try configuration())
        driver.begin()
        guard case .again = driver.answer(head(status, [("Location", "http://b.test/x")])) else {
            Issue.record("not followed")
            return
        }
        #expect(driver.session.request.url.text == "http://b.test/x")
        guard case .open = driver.answer(good) else {
            Issue.record("not open")
            return
        }
        #expect(driver.session.origin == "http://b.test")
        _ = driver.end()
        driver.begin()
        #expect(driver.session.request.url.text == "http://a.test/events?x=1")
    }

    @Test(arguments: [nil, ""])
    func invalidRedirectsAreFatal(_ location: String?) throws {
        var driver = Driver(try configuration())
        driver.begin()
        let told = failure(driver.answer(head(301, location.map { [("Location", $0)] } ?? [])))
        #expect(told?.error.code == .redirect)
        #expect(told?.isFatal == true)
    }
}

@Suite struct EventSourceReconnectTests {
    @Test func theFirstDelayIsTheServersAndUpToAFifthMore() throws {
        for (random, expected) in [(0.0, 3000), (0.5, 3300), (0.999, 3599)] {
            var driver = Driver(try configuration())
            driver.random = random
            driver.begin()
            let told = driver.end(lost)
            // The number that the handler of this attempt gets.
            #expect(told.attempt == 2 && driver.session.attempt == 2)
            #expect(told.isFatal == false)
            let delay = try #require(told.retryIn)
            #expect(delay / .milliseconds(1) >= Double(expected))
            #expect(delay / .milliseconds(1) <= Double(expected) + 1)
            #expect(driver.session.wakeUp == driver.now + delay)
        }
    }

    @Test func failuresInARowWaitLonger() throws {
        var driver = Driver(try configuration { $0.maxDelay = .seconds(10) })
        driver.random = 0.999999
        var delays: [Double] = []
        for _ in 0..<5 {
            driver.begin()
            let told = driver.end(lost)
            delays.append(try #require(told.retryIn) / .seconds(1))
        }
        for (delay, expected) in zip(delays, [3.6, 6, 10, 10, 10]) {
            #expect(abs(delay - expected) < 0.01)
        }
    }

    @Test func noDelayIsShorterThanTheServerAsked() throws {
        var driver = Driver(try configuration { $0.maxDelay = .seconds(1) })
        driver.session.setReconnectionTime(milliseconds: 5000)
        for _ in 0..<4 {
            driver.begin()
            #expect(try #require(driver.end(lost).retryIn) >= .seconds(5))
        }
        driver.session.setReconnectionTime(milliseconds: 0)
        driver.begin()
        #expect(try #require(driver.end(lost).retryIn) <= .seconds(1))
    }

    @Test func anEventInOrderOrTimeMakesAConnectionStable() throws {
        for isByEvent in [true, false] {
            var driver = Driver(try configuration())
            for _ in 0..<3 {
                driver.begin()
                _ = driver.end(lost)
            }
            driver.begin()
            _ = driver.answer(good)
            if isByEvent {
                driver.session.dispatched()
            } else {
                driver.now = driver.now + .seconds(10)
            }
            let told = driver.end()
            #expect(told.attempt == 1)
            #expect(told.retryIn == .seconds(3))
            #expect(told.error.code == .closed)
        }
    }

    @Test func attemptsCanBeLimited() throws {
        var driver = Driver(try configuration { $0.maxReconnects = 2 })
        for _ in 0..<2 {
            driver.begin()
            #expect(!driver.end(lost).isFatal)
        }
        driver.begin()
        let told = driver.end(lost)
        #expect(told.isFatal)
        #expect(told.error.code == .reconnectsExhausted)
        #expect(driver.session.wakeUp == nil)
    }

    @Test func withoutReconnectingTheEndIsFinal() throws {
        var driver = Driver(try configuration { $0.reconnects = false })
        driver.begin()
        _ = driver.answer(good)
        driver.session.dispatched()
        let told = driver.end()
        #expect(told.isFatal)
        #expect(told.error.code == .closed)
    }

    @Test func aWrongKeyIsFatal() throws {
        var driver = Driver(try configuration())
        driver.begin()
        let told = driver.end(HTTPFailure(RealtimeError(.tls, "pin"), isFinal: true))
        #expect(told.isFatal)
    }

    @Test func aRestartIsNotAFailure() throws {
        var driver = Driver(try configuration { $0.maxReconnects = 1 })
        driver.begin()
        _ = driver.answer(good)
        for _ in 0..<5 {
            driver.session.restart(now: driver.now)
            #expect(driver.session.state == .connecting)
            #expect(driver.session.wakeUp == driver.now)
            driver.begin()
            _ = driver.answer(good)
        }
        #expect(!driver.end().isFatal)
    }

    @Test func aRestartAfterAStableStreamResetsTheCount() throws {
        var driver = Driver(try configuration { $0.maxReconnects = 2 })
        for _ in 0..<2 {
            driver.begin()
            #expect(!driver.end(lost).isFatal)
        }
        driver.begin()
        _ = driver.answer(good)
        driver.now = driver.now + .seconds(10)
        driver.session.restart(now: driver.now)
        for attempt in 1...2 {
            driver.begin()
            #expect(driver.end(lost).attempt == attempt + 1)
        }
    }

    @Test func withoutANetworkItWaitsAndCountsNothing() throws {
        var driver = Driver(try configuration { $0.maxReconnects = 1 })
        driver.begin()
        _ = driver.answer(good)
        driver.session.setOnline(false, now: driver.now, random: 0)
        #expect(driver.session.state == .open)
        for _ in 0..<3 {
            let told = driver.end(lost)
            #expect(!told.isFatal)
            #expect(told.retryIn == nil)
            #expect(driver.session.wakeUp == nil)
        }
        driver.session.setOnline(true, now: driver.now, random: 0.9)
        let due = try #require(driver.session.wakeUp)
        #expect(due - driver.now == .milliseconds(900))
        driver.begin()
        #expect(!driver.end(lost).isFatal)
    }

    @Test func theHostEndsAWait() throws {
        var driver = Driver(try configuration())
        driver.begin()
        _ = driver.answer(good)
        var hurries = driver.session.retryNow(driver.now)
        #expect(!hurries && driver.session.state == .open)
        driver.session.setOnline(false, now: driver.now, random: 0)
        _ = driver.end(lost)
        #expect(driver.session.wakeUp == nil)
        hurries = driver.session.retryNow(driver.now)
        #expect(hurries && driver.session.wakeUp == driver.now)
    }

    /// A returning network ends a wait for it, but not a delay that the server asked for.
    @Test func aFlapKeepsTheServersDelay() throws {
        var driver = Driver(try configuration { try $0.addRetryStatus(503) })
        func flap() -> Duration? {
            driver.session.setOnline(false, now: driver.now, random: 0)
            driver.session.setOnline(true, now: driver.now, random: 0.5)
            return driver.session.wakeUp.map { $0 - driver.now }
        }
        driver.begin()
        _ = driver.answer(head(503, [("Retry-After", "60")]))
        #expect(flap() == .seconds(60))
        driver.begin()
        _ = driver.answer(good)
        driver.session.setReconnectionTime(milliseconds: 20_000)
        _ = driver.end()
        #expect(flap() == .seconds(20))
        driver.begin()
        _ = driver.end(lost)
        #expect(flap() == .milliseconds(500))
    }

    @Test func withoutANetworkNothingBegins() throws {
        var session = EventSourceSession(try configuration(), lastEventID: "")
        func wait() -> String? { session.waitBegan(for: "a.test:80")?.message }
        session.setOnline(false, now: start, random: 0)
        #expect(wait() == nil)
        session.start(now: start)
        #expect(session.wakeUp == nil && session.waitsForNetwork)
        #expect(wait() == "a.test:80: no network reaches it")
        #expect(wait() == nil)
        session.setOnline(true, now: start, random: 0.5)
        #expect(session.wakeUp == start + .milliseconds(500) && !session.waitsForNetwork)
    }

    @Test func withoutReconnectingItNeedsNoNetwork() throws {
        var driver = Driver(try configuration { $0.reconnects = false })
        driver.session.setOnline(false, now: driver.now, random: 0)
        let wait = driver.session.waitBegan(for: "a.test:80")
        #expect(wait == nil && !driver.session.waitsForNetwork)
        driver.begin()
        let end = driver.end(lost)
        #expect(end.isFatal && end.error.code == .connectionLost)
    }
}

@Suite struct EventSourceTimeTests {
    @Test func theResponseTimeoutStartsWithTheRequest() throws {
        var driver = Driver(try configuration { $0.responseTimeout = .seconds(2) })
        driver.begin()
        let begun = driver.now
        driver.now = try #require(driver.session.wakeUp)
        #expect(driver.now == begun + .seconds(2))
        // The request may be sent a second late.
        let sent = begun + .seconds(1)
        var event = driver.session.timeReached(driver.now, requestStarted: sent, random: 0)
        guard case .nothing = event else {
            Issue.record("\(event)")
            return
        }
        driver.now = try #require(driver.session.wakeUp)
        #expect(driver.now == sent + .seconds(2))
        event = driver.session.timeReached(driver.now, requestStarted: sent, random: 0)
        guard case .failed(let told) = event else {
            Issue.record("\(event)")
            return
        }
        #expect(told.error.code == .timeout)
        #expect(told.error.message.hasSuffix("within 2 s (responseTimeout)"))
        #expect(!told.isFatal)
    }

    @Test func silenceCanEndAStream() throws {
        var driver = Driver(try configuration { $0.idleTimeout = .seconds(5) })
        driver.begin()
        _ = driver.answer(good)
        driver.now = driver.now + .seconds(4)
        driver.session.received(now: driver.now)
        let due = try #require(driver.session.wakeUp)
        #expect(due == driver.now + .seconds(5))
        guard
            case .failed(let told) = driver.session.timeReached(
                due, requestStarted: nil, random: 0)
        else {
            Issue.record("no end")
            return
        }
        #expect(told.error.code == .timeout)
        #expect(told.error.message.hasSuffix("sent nothing for 5 s (idleTimeout)"))
        #expect(driver.session.state == .connecting)
    }

    @Test func silenceDoesNotCountDuringAPause() throws {
        var driver = Driver(try configuration { $0.idleTimeout = .seconds(5) })
        driver.begin()
        _ = driver.answer(good)
        driver.session.setPaused(true, now: driver.now)
        #expect(driver.session.wakeUp == nil)
        driver.now = driver.now + .seconds(60)
        driver.session.setPaused(false, now: driver.now)
        #expect(driver.session.wakeUp == driver.now + .seconds(5))
        driver.session.setPaused(false, now: driver.now + .seconds(1))
        #expect(driver.session.wakeUp == driver.now + .seconds(5))
    }

    @Test func linesOfTheLogSayWhenTheNextAttemptFollows() {
        let error = RealtimeError(.store, "the file is full")
        let line = HTTPSourceFailure(error: error, retryIn: .seconds(2), attempt: 3).line
        #expect(line.hasPrefix("the file is full; attempt 3 in 2 s"))
        // Nothing has ended.
        #expect(HTTPSourceFailure(error: error).line == "the file is full")
        #expect(HTTPSourceFailure(error: error, attempt: 1, isFatal: true).line == error.message)
    }
}
