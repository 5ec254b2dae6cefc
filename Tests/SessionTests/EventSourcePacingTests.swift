import Session
import Testing
import Wire

private typealias Driver = EventSourceDriver

private func configuration(
    _ change: (inout EventSourceConfiguration) throws -> Void = { _ in }
) throws -> EventSourceConfiguration {
    var configuration = try EventSourceConfiguration(url: "http://a.test/events")
    try change(&configuration)
    return configuration
}

private func head(_ status: Int, _ name: String, _ value: String) -> ResponseHead {
    ResponseHead(status: status, fields: [HeaderField(name: name, value: value)])
}

private let good = head(200, "Content-Type", "text/event-stream")
private let lost = HTTPFailure(RealtimeError(.connectionLost, "gone"))

/// How often a server is asked, whatever it answers.
@Suite struct EventSourcePacingTests {
    /// Like browsers (Firefox); the caller's own shorter time is used.
    @Test func theServersDelayHasAFloor() throws {
        for (asked, used) in [(0, 500), (499, 500), (500, 500), (2000, 2000)] {
            var driver = Driver(try configuration())
            driver.session.setReconnectionTime(milliseconds: Int64(asked))
            driver.begin()
            #expect(driver.end(lost).retryIn == .milliseconds(used))
            #expect(driver.session.reconnectionMilliseconds == used)
        }
        var own = Driver(
            try configuration {
                $0.reconnectionTime = .milliseconds(20)
                $0.minReconnectionTime = .milliseconds(10)
            })
        own.begin()
        #expect(own.end(lost).retryIn == .milliseconds(20))
        own.session.setReconnectionTime(milliseconds: 0)
        #expect(own.session.reconnectionMilliseconds == 10)
    }

    /// The server sends one event and ends the stream. It is polled at the pace that it asks for,
    /// or at the minimum. Dropping the connection counts as a failure.
    @Test(
        arguments: [
            (2000, nil, [2000, 2000, 2000, 2000]), (0, nil, [500, 500, 500, 500]),
            (2000, lost, [2000, 2000, 4000, 8000]),
        ] as [(Int64, HTTPFailure?, [Int])])
    func anEventAloneDoesNotMakeAConnectionStable(
        _ asked: Int64, _ end: HTTPFailure?, _ delays: [Int]
    ) throws {
        var driver = Driver(try configuration())
        for delay in delays {
            driver.begin()
            _ = driver.answer(good)
            driver.session.setReconnectionTime(milliseconds: asked)
            driver.session.dispatched()
            #expect(driver.end(end).retryIn == .milliseconds(delay))
        }
    }

    /// The backoff's initial delay is the server's `retry`, once there is one.
    @Test func aBackoffReplacesTheOptions() throws {
        var backoff = BackoffConfiguration()
        backoff.jitter = .none
        backoff.attemptLimit = 3
        backoff.maximum = .seconds(2)
        var driver = Driver(try configuration { $0.backoff = backoff })
        for delay in [1, 2] {
            driver.begin()
            #expect(driver.end(lost).retryIn == .seconds(delay))
        }
        driver.begin()
        driver.session.setReconnectionTime(milliseconds: 5000)
        #expect(driver.end(lost).retryIn == .seconds(5))
        driver.begin()
        let told = driver.end(lost)
        #expect(told.isFatal && told.error.code == .reconnectsExhausted)
    }

    /// Whatever the delays are: 50 requests at once, then four a second.
    @Test func requestsHaveACeiling() throws {
        var driver = Driver(
            try configuration {
                $0.reconnectionTime = .zero
                $0.minReconnectionTime = .zero
                $0.maxDelay = .zero
            })
        let began = driver.now
        for number in 1...70 {
            driver.begin()
            let due = Duration.milliseconds(250 * max(0, number - 50))
            #expect(driver.now - began == due, "attempt \(number)")
            _ = driver.answer(good)
            driver.session.dispatched()
            // The ceiling's delay is reported, too.
            #expect(driver.end().retryIn == .milliseconds(number < 50 ? 0 : 250))
        }
        // A second later four more are allowed, and redirects count.
        driver.now = try #require(driver.session.wakeUp) + .milliseconds(750)
        driver.begin()
        for _ in 0..<3 { _ = driver.answer(head(302, "Location", "/x")) }
        #expect(driver.end(lost).retryIn == .milliseconds(250))
    }
}
