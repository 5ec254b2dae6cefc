import Session
import Testing
import Wire

/// Which requests are sent again: a POST only if the server cannot have acted on it, or if the
/// program asks for it.
@Suite struct EventSourceRepeatTests {
    private static let good = ResponseHead(
        status: 200, fields: [HeaderField(name: "Content-Type", value: "text/event-stream")])
    private static let lost = RealtimeError(.connectionLost, "gone")

    private func driver(
        _ method: String, _ change: (inout EventSourceConfiguration) throws -> Void = { _ in }
    ) throws -> EventSourceDriver {
        var configuration = try EventSourceConfiguration(url: "http://a.test/events")
        try configuration.setMethod(method)
        try change(&configuration)
        var driver = EventSourceDriver(configuration)
        driver.begin()
        return driver
    }

    @Test(arguments: ["GET", "PUT", "DELETE"])
    func idempotentRequestsAreRepeated(_ method: String) throws {
        var driver = try driver(method)
        _ = driver.answer(EventSourceRepeatTests.good)
        let end = driver.end()
        #expect(!end.isFatal)
        driver.begin()
        #expect(driver.session.request.method == method)
        let loss = driver.end(HTTPFailure(EventSourceRepeatTests.lost))
        #expect(!loss.isFatal)
    }

    @Test(arguments: ["POST", "PATCH", "LOCK"])
    func theNormalEndOfOthersIsTheEnd(_ method: String) throws {
        var driver = try driver(method)
        _ = driver.answer(EventSourceRepeatTests.good)
        let end = driver.end()
        #expect(end.isFatal && end.error.code == .closed)
        #expect(end.error.message == "a.test:80 ended the stream")
        #expect(driver.session.state == .closed && driver.session.wakeUp == nil)
    }

    @Test func afterTheRequestAFailureIsFinal() throws {
        var driver = try driver("POST")
        let end = driver.end(HTTPFailure(EventSourceRepeatTests.lost))
        #expect(end.isFatal && end.error.code == .connectionLost)
        #expect(
            end.error.message
                == "gone; a POST is not sent again, unless the program asks (retryUnsafe)")
        // The server may have acted on it, and then ended a kept connection.
        driver = try self.driver("POST")
        let stale = driver.end(HTTPFailure(EventSourceRepeatTests.lost, isStale: true))
        #expect(stale.isFatal)
    }

    @Test func beforeTheRequestItIsNot() throws {
        let unseen = [
            HTTPFailure(RealtimeError(.connect, "refused"), precedesRequest: true),
            HTTPFailure(EventSourceRepeatTests.lost, precedesRequest: true, isStale: true),
        ]
        for failure in unseen {
            var driver = try driver("POST")
            let end = driver.end(failure)
            #expect(!end.isFatal)
            driver.begin()
            #expect(driver.session.request.method == "POST")
        }
    }

    @Test func aHeadThatComesTooLateIsFinal() throws {
        for method in ["POST", "GET"] {
            var driver = try driver(method)
            let due = try #require(driver.session.wakeUp)
            // The default is for servers that send it with the first event.
            #expect(due == driver.now + .seconds(300))
            let event = driver.session.timeReached(due, requestStarted: driver.now, random: 0)
            guard case .failed(let failure) = event else {
                Issue.record("\(event)")
                return
            }
            #expect(failure.isFatal == (method == "POST") && failure.error.code == .timeout)
        }
    }

    @Test func silenceIsFinal() throws {
        var driver = try driver("POST") { $0.idleTimeout = .seconds(1) }
        _ = driver.answer(EventSourceRepeatTests.good)
        let later = driver.now + .seconds(1)
        guard
            case .failed(let failure) = driver.session.timeReached(
                later, requestStarted: driver.now, random: 0)
        else {
            Issue.record("is open")
            return
        }
        #expect(failure.isFatal)
    }

    @Test func theProgramMayAskForIt() throws {
        let changes: [(inout EventSourceConfiguration) throws -> Void] = [
            { $0.retriesUnsafe = true },
            { try $0.addHeader(name: "idempotency-key", value: "1") },
        ]
        for change in changes {
            var driver = try driver("POST", change)
            _ = driver.answer(EventSourceRepeatTests.good)
            let end = driver.end()
            #expect(!end.isFatal)
            driver.begin()
            let loss = driver.end(HTTPFailure(EventSourceRepeatTests.lost))
            #expect(!loss.isFatal)
        }
    }

    /// It was asked for by the list.
    @Test func retryStatusesHoldForAllMethods() throws {
        var driver = try driver("POST") { try $0.addRetryStatus(503) }
        guard case .failed(let failure) = driver.answer(ResponseHead(status: 503)) else {
            Issue.record("is open")
            return
        }
        #expect(!failure.isFatal)
    }

    @Test func aRestartIsAskedFor() throws {
        var driver = try driver("POST")
        _ = driver.answer(EventSourceRepeatTests.good)
        driver.session.restart(now: driver.now)
        driver.begin()
        #expect(driver.session.request.method == "POST")
    }

    @Test(arguments: [
        ["text/event-stream,charset=utf-8"], ["text/event-stream, text/event-stream"],
        ["text/plain", "text/event-stream"], ["text/event-stream", "*/*"],
        ["text/event-stream; charset=\"a,b\""],
    ])
    func theseTypesOpen(_ types: [String]) throws {
        var driver = try driver("GET")
        let fields = types.map { HeaderField(name: "Content-Type", value: $0) }
        guard case .open = driver.answer(ResponseHead(status: 200, fields: fields)) else {
            Issue.record("\(types) did not open")
            return
        }
    }

    @Test func theLastTypeCounts() throws {
        var driver = try driver("GET")
        let fields = ["text/event-stream", "text/plain"].map {
            HeaderField(name: "Content-Type", value: $0)
        }
        guard case .failed(let failure) = driver.answer(ResponseHead(status: 200, fields: fields))
        else {
            Issue.record("opened")
            return
        }
        #expect(failure.error.message.contains("\"text/event-stream, text/plain\""))
    }
}
