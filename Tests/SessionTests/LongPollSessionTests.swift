import Testing
import Wire

@testable import Session

private let date = polledDate
private let validators = polledValidators

@Suite struct LongPollRequestTests {
    @Test func theFirstRequestIsPlain() throws {
        var poller = try Poller()
        poller.begin()
        #expect(poller.session.request.method == "GET" && poller.session.request.body == .none)
        #expect(poller.header("Accept") == "*/*")
        #expect(poller.header("Cache-Control") == "no-cache")
        for name in ["If-Modified-Since", "If-None-Match", "Last-Event-ID"] {
            #expect(poller.header(name) == nil)
        }
    }

    @Test func anEventStreamIsNeverRequested() throws {
        var poller = try Poller { try $0.setHeader(name: "accept", value: "application/json") }
        poller.begin()
        #expect(poller.session.request.values("Accept") == ["application/json"])
        for value in ["text/event-stream", "a/b, Text/Event-Stream;q=0.1"] {
            #expect(throws: RealtimeError.self) {
                try Poller { try $0.setHeader(name: "Accept", value: value) }
            }
        }
        #expect(throws: RealtimeError.self) {
            try Poller { try $0.addHeader(name: "expect", value: "100-continue") }
        }
        #expect(
            try poller.reply(200, [("Content-Type", "text/event-stream")])
                == .failed(.contentType, retryIn: nil, isFatal: true))
    }

    /// L2: Nchan's validators are not quoted, and are sent back byte for byte.
    @Test func validatorsAreSentBackUnchanged() throws {
        var poller = try Poller()
        #expect(try poller.answer(200, validators, body: 3) == .message)
        #expect(poller.session.messageID == "784111777:0,[1]")
        #expect(poller.session.lastEventID == "")
        poller.session.delivered(now: poller.now)
        #expect(poller.session.lastEventID == "784111777:0,[1]")
        poller.begin()
        #expect(poller.header("If-Modified-Since") == date)
        #expect(poller.header("If-None-Match") == "0,[1]")
        #expect(poller.header("Last-Event-ID") == nil)
    }

    @Test func aTagIsSentBackByteForByte() throws {
        let tag = FieldText(bytes: [0x22, 0xE9, 0x22])
        var poller = try Poller()
        poller.begin()
        let head = ResponseHead(status: 200, fields: [HeaderField(name: "ETag", content: tag)])
        _ = poller.session.received(
            head, requestStarted: nil, canAuthorize: false, now: poller.now)
        _ = try poller.session.received(1, now: poller.now)
        _ = poller.session.ended(nil, now: poller.now, wallClock: 0, random: 0)
        poller.session.delivered(now: poller.now)
        poller.begin()
        let sent = poller.session.request.fields.filter { $0.name == "If-None-Match" }
        #expect(sent.map(\.content.bytes) == [[0x22, 0xE9, 0x22]])
    }

    @Test func onlyA200MovesTheCursor() throws {
        var poller = try Poller()
        _ = try poller.answer(200, validators, body: 1)
        poller.session.delivered(now: poller.now)
        for status in [304, 408, 204, 504] {
            #expect(try poller.answer(status, [("Etag", "9"), ("Last-Modified", "x")]) == .nothing)
            #expect(poller.session.lastEventID == "784111777:0,[1]")
        }
        poller.begin()
        #expect(poller.header("If-None-Match") == "0,[1]")
        // A response without validators keeps them; with one of them it removes the other.
        _ = try poller.reply(200)
        poller.begin()
        #expect(poller.header("If-None-Match") == "0,[1]")
        _ = try poller.reply(200, [("ETag", "\"q\"")])
        poller.begin()
        #expect(poller.header("If-None-Match") == "\"q\"")
        #expect(poller.header("If-Modified-Since") == nil && poller.session.lastEventID == "")
    }

    @Test func idsAreSentInAHeaderOrTheQuery() throws {
        for (mode, url) in [
            (LongPollCursorMode.headerID, "http://example.com/poll?a=b"),
            (.queryID, "http://example.com/poll?a=b&since=784111777%3A0%2C%5B1%5D"),
            (.none, "http://example.com/poll?a=b"),
        ] {
            var poller = try Poller { try $0.setCursor(mode, queryParameter: "since") }
            _ = try poller.answer(200, validators, body: 1)
            poller.session.delivered(now: poller.now)
            poller.begin()
            #expect(poller.session.request.url.text == url)
            #expect(
                poller.header("Last-Event-ID") == (mode == .headerID ? "784111777:0,[1]" : nil))
            #expect(poller.header("If-None-Match") == nil)
            #expect(poller.session.lastEventID == "784111777:0,[1]")
        }
    }

    /// L8: treated like a response with 200 and no body.
    @Test func batchesWithoutAMessageWaitForTheInterval() throws {
        var poller = try Poller { $0.minHold = .zero }
        for wait in [Duration.zero, .zero, .seconds(15), .seconds(15)] {
            #expect(try poller.answer(200, validators, body: 1) == .message)
            poller.session.delivered(isEmpty: true, now: poller.now)
            #expect(poller.wait == wait)
        }
        _ = try poller.answer(200, validators, body: 1)
        poller.session.delivered(now: poller.now)
        #expect(poller.wait == .zero)
    }

    @Test func aServerThatHoldsAPollForItsTimeIsOpen() throws {
        var poller = try Poller { $0.pollTimeout = .seconds(60) }
        poller.begin()
        let started = poller.now
        #expect(poller.session.state == .connecting)
        poller.now = poller.now + .seconds(60)
        let event = poller.session.timeReached(poller.now, requestStarted: started, random: 0)
        guard case .held = event else { throw RealtimeError(.state, "\(event)") }
        #expect(poller.session.state == .open && poller.wait == .zero)
    }

    @Test func gatewayTimeoutsCountIfWanted() throws {
        var plain = try Poller()
        #expect(try plain.answer(504) == .nothing)
        var poller = try Poller { $0.countsGatewayTimeouts = true }
        #expect(
            try poller.answer(504)
                == .failed(.httpStatus, retryIn: .milliseconds(500), isFatal: false))
        #expect(try poller.answer(504, after: .seconds(2)) == .nothing)
    }

    @Test func aServersOwnIDIsUsed() throws {
        var poller = try Poller { try $0.setCursor(.headerID) }
        _ = try poller.answer(200, validators + [("last-event-id", "abc")], body: 1)
        #expect(poller.session.messageID == "abc")
        // Without a valid date there is no id.
        var other = try Poller()
        _ = try other.answer(200, [("Last-Modified", "yesterday"), ("ETag", "1")], body: 1)
        #expect(other.session.messageID == "")
    }

    @Test func itStartsAfterAnID() throws {
        var poller = try Poller { try $0.setLastEventID("784111777:0,[1]") }
        poller.begin()
        #expect(poller.header("If-Modified-Since") == date)
        #expect(poller.header("If-None-Match") == "0,[1]")
        var other = try Poller {
            try $0.setLastEventID("any")
            try $0.setCursor(.headerID)
        }
        other.begin()
        #expect(other.header("Last-Event-ID") == "any")
        for id in ["any", "x:1", "-1:1", ":"] {
            #expect(throws: RealtimeError.self) { try Poller { try $0.setLastEventID(id) } }
        }
        #expect(throws: RealtimeError.self) { try Poller { try $0.setLastEventID("a\r\nb") } }
    }

    @Test func redirectsAreFollowedWithoutCredentials() throws {
        var poller = try Poller { try $0.setHeader(name: "Authorization", value: "Bearer x") }
        poller.begin()
        let away = ResponseHead(
            status: 307, fields: [HeaderField(name: "Location", value: "http://other.example/")])
        let answer = poller.session.received(
            away, requestStarted: nil, canAuthorize: false, now: poller.now)
        guard case .again = answer else {
            Issue.record("\(answer)")
            return
        }
        #expect(poller.session.request.url.text == "http://other.example/")
        #expect(poller.header("Authorization") == nil)
        #expect(try poller.reply(204) == .nothing)
        poller.begin()
        #expect(poller.session.request.url.text == "http://example.com/poll?a=b")
    }

    @Test func credentialsAreRequestedOnce() throws {
        var poller = try Poller()
        poller.begin()
        let head = ResponseHead(status: 401)
        for attempt in 1...2 {
            let answer = poller.session.received(
                head, requestStarted: nil, canAuthorize: true, now: poller.now)
            switch answer {
            case .unauthorized:
                #expect(attempt == 1 && poller.session.isAuthorizing)
                #expect(poller.session.wakeUp == nil)
                try poller.configuration.setHeader(name: "Authorization", value: "Bearer y")
                poller.session.authorized(poller.configuration, now: poller.now)
                #expect(poller.header("Authorization") == "Bearer y")
            case .read:
                #expect(attempt == 2)
                let outcome = poller.session.ended(
                    nil, now: poller.now, wallClock: 0, random: 0)
                #expect(Came(outcome) == .failed(.httpStatus, retryIn: nil, isFatal: true))
            case .again, .failed: Issue.record("\(answer)")
            }
        }
    }
}

@Suite struct LongPollTimingTests {
    @Test func aMessageIsFollowedAtOnce() throws {
        var poller = try Poller()
        #expect(try poller.answer(200, validators, body: 1) == .message)
        #expect(poller.wait == nil)
        poller.session.delivered(now: poller.now)
        #expect(poller.wait == .zero)
        #expect(poller.session.state == .open)
    }

    /// L5: at once if the poll was held, otherwise at its start + interval.
    @Test(arguments: [200, 204, 304, 408, 504]) func anEmptyPollIsRepeated(_ status: Int) throws {
        var poller = try Poller()
        #expect(try poller.answer(status, after: .milliseconds(1000)) == .nothing)
        #expect(poller.wait == .zero)
        #expect(try poller.answer(status, after: .milliseconds(999)) == .nothing)
        #expect(poller.wait == .milliseconds(14_001))
        #expect(poller.session.attempt == 1)
    }

    @Test func aPollIsHeldForItsTimeoutOnly() throws {
        var poller = try Poller()
        poller.begin()
        #expect(poller.wait == .seconds(60))
        // The request was sent five seconds after the attempt began.
        let start = poller.now + .seconds(5)
        poller.now = poller.now + .seconds(60)
        guard
            case .nothing = poller.session.timeReached(
                poller.now, requestStarted: start, random: 0)
        else {
            Issue.record("too early")
            return
        }
        #expect(poller.wait == .seconds(5))
        poller.now = poller.now + .seconds(5)
        guard
            case .held = poller.session.timeReached(
                poller.now, requestStarted: start, random: 0)
        else {
            Issue.record("not held")
            return
        }
        #expect(poller.wait == .zero)
    }

    @Test func anAnswerThatStallsIsATimeout() throws {
        var poller = try Poller()
        poller.begin()
        _ = poller.session.received(
            ResponseHead(status: 200), requestStarted: nil, canAuthorize: false, now: poller.now)
        poller.now = poller.now + .seconds(59)
        _ = try poller.session.received(10, now: poller.now)
        #expect(poller.wait == .seconds(60))
        poller.now = poller.now + .seconds(60)
        guard
            case .failed(let failure) = poller.session.timeReached(
                poller.now, requestStarted: nil, random: 0)
        else {
            Issue.record("no failure")
            return
        }
        #expect(failure.error.code == .timeout && !failure.isFatal)
        #expect(failure.retryIn == .milliseconds(500))
    }

    /// L8: even with a shorter min_hold, empty responses in a row are not polled at once.
    @Test func emptyAnswersInARowWaitForTheInterval() throws {
        var poller = try Poller { $0.minHold = .zero }
        for expected in [Duration.zero, .zero, .seconds(15), .seconds(15)] {
            #expect(try poller.answer(200) == .nothing)
            #expect(poller.wait == expected)
        }
        _ = try poller.answer(200, body: 1)
        poller.session.delivered(now: poller.now)
        #expect(try poller.answer(200) == .nothing)
        #expect(poller.wait == .zero)
    }

    /// L6: half of 1 s · 2^n, up to max_delay, and as much again at random.
    @Test(arguments: [429, 500, 502, 503]) func failuresAreFollowedByABackoff(_ status: Int) throws
    {
        var poller = try Poller()
        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            poller.random = 0
            #expect(
                try poller.answer(status)
                    == .failed(
                        .httpStatus, retryIn: .milliseconds(500 * seconds), isFatal: false))
            #expect(poller.session.state == .connecting)
        }
        #expect(poller.session.attempt == 8)
        _ = try poller.answer(304)
        poller.random = 0.5
        #expect(
            try poller.answer(status)
                == .failed(.httpStatus, retryIn: .milliseconds(750), isFatal: false))
    }

    @Test func retryAfterIsUsedIfItIsLonger() throws {
        var poller = try Poller()
        for (value, wait) in [
            ("7", Duration.seconds(7)), ("0", .seconds(1)), ("99999", .seconds(300)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", .seconds(10)), ("soon", .seconds(8)),
        ] {
            #expect(
                try poller.answer(503, [("Retry-After", value)])
                    == .failed(.httpStatus, retryIn: wait, isFatal: false))
        }
    }

    @Test(arguments: [201, 206, 300, 400, 401, 403, 404, 425, 501, 505])
    func otherAnswersAreFinal(_ status: Int) throws {
        var poller = try Poller()
        #expect(
            try poller.answer(status) == .failed(.httpStatus, retryIn: nil, isFatal: true))
        #expect(poller.session.state == .closed && poller.session.wakeUp == nil)
    }

    @Test func aDeletedChannelResetsTheCursor() throws {
        var poller = try Poller()
        _ = try poller.answer(200, validators, body: 1)
        poller.session.delivered(now: poller.now)
        #expect(
            try poller.answer(410) == .failed(.gone, retryIn: .seconds(15), isFatal: false))
        #expect(poller.wait == .seconds(15) && poller.session.lastEventID == "")
        poller.begin()
        #expect(poller.header("If-None-Match") == nil)
        var strict = try Poller { $0.failsWhenGone = true }
        #expect(try strict.answer(410) == .failed(.gone, retryIn: nil, isFatal: true))
    }

    @Test func networkFailuresAreFollowedByABackoff() throws {
        var poller = try Poller()
        for (code, isFinal) in [(RealtimeError.Code.connect, false), (.tls, true)] {
            poller.begin()
            let failure = HTTPFailure(RealtimeError(code, ""), isFinal: isFinal)
            let outcome = poller.session.ended(
                failure, now: poller.now, wallClock: 0, random: 0)
            let wait = isFinal ? nil : Duration.milliseconds(500)
            #expect(Came(outcome) == .failed(code, retryIn: wait, isFatal: isFinal))
        }
    }

    /// L4: undelivered messages are asked for again.
    @Test func aFailureBeforeDeliveryKeepsTheCursor() throws {
        var poller = try Poller()
        _ = try poller.answer(200, validators, body: 1)
        let error = RealtimeError(.protocolViolation, "cut")
        let failure = poller.session.rejected(error, now: poller.now, random: 0)
        #expect(!failure.isFatal && failure.retryIn == .milliseconds(500))
        poller.begin()
        #expect(poller.header("If-None-Match") == nil)
    }

    /// A response that cannot be delivered is a failure, however often it comes.
    @Test func rejectedAnswersAreFollowedByABackoff() throws {
        var poller = try Poller()
        let error = RealtimeError(.protocolViolation, "cut")
        for (attempt, wait) in [(2, 500), (3, 1000), (4, 2000)] {
            #expect(try poller.answer(200, validators, body: 1) == .message)
            let failure = poller.session.rejected(error, now: poller.now, random: 0)
            #expect(failure.retryIn == .milliseconds(wait) && failure.attempt == attempt)
            #expect(failure.error.message.contains("example.com"))
        }
        #expect(try poller.answer(200, validators, body: 1) == .message)
        poller.session.delivered(now: poller.now)
        #expect(poller.session.attempt == 1)
    }

    @Test func anAnswerWithoutAnIdKeepsIt() throws {
        var poller = try Poller {
            try $0.setCursor(.headerID)
            $0.sendsValidatorsToo = true
            try $0.setLastEventID("7")
        }
        #expect(try poller.answer(200, [("ETag", "x")], body: 1) == .message)
        poller.session.delivered(now: poller.now)
        #expect(try poller.answer(200, [("ETag", "y")], after: .seconds(1)) == .nothing)
        poller.begin()
        #expect(poller.header("Last-Event-ID") == "7" && poller.session.lastEventID == "7")
        #expect(poller.header("If-None-Match") == "y")
    }

    @Test func aBodyHasItsLimit() throws {
        var poller = try Poller { $0.maxBodyBytes = 10 }
        #expect(try poller.answer(200, body: 10) == .message)
        poller.session.delivered(now: poller.now)
        #expect(throws: RealtimeError.self) { try poller.answer(200, body: 11) }
        // A body that nobody wants is read up to its own limit, then dropped.
        var other = try Poller { $0.maxBodyBytes = 0 }
        other.begin()
        _ = other.session.received(
            ResponseHead(status: 404), requestStarted: nil, canAuthorize: false, now: other.now)
        #expect(try other.session.received(64 << 10, now: other.now))
        #expect(try !other.session.received(1, now: other.now))
    }

    @Test func deliveredMessagesCountAfterClose() throws {
        var poller = try Poller()
        _ = try poller.answer(200, validators, body: 1)
        poller.session.close()
        poller.session.delivered(now: poller.now)
        #expect(poller.session.lastEventID == "784111777:0,[1]")
        #expect(poller.session.wakeUp == nil && poller.session.state == .closed)
    }
}
