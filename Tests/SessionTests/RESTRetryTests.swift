import Session
import Testing
import Wire

/// R1 to R6: when a request is sent again.
struct RESTRetryTests {
    @Test(arguments: [(0.0, 500, 1000), (0.5, 750, 1500), (0.999, 999, 1999)])
    func delaysFollowTheFormula(random: Double, first: Int, second: Int) throws {
        let client = RESTClientModel()
        client.random = random
        let id = try client.submit()
        #expect(client.done() == ["start 1 GET http://h/"])
        #expect(client.answer(id, 503) == [])
        var delay = try #require(client.passToNext())
        #expect(delay >= .milliseconds(first) && delay <= .milliseconds(first + 1))
        #expect(client.done() == ["start 1 GET http://h/ fresh"])
        #expect(client.fail(id) == [])
        delay = try #require(client.passToNext())
        #expect(delay >= .milliseconds(second) && delay <= .milliseconds(second + 1))
        #expect(client.done() == ["start 1 GET http://h/"])
        #expect(client.answer(id, 503) == ["finish 1 httpStatus 503 (3)"])
        #expect(client.passToNext() == nil)
    }

    static let repeatable = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY"]
    static let unsafe = ["POST", "PATCH", "LOCK"]

    @Test(arguments: repeatable + unsafe)
    func failuresBeforeTheRequestAreRetriedForEveryMethod(method: String) throws {
        for code in [RealtimeError.Code.resolve, .connect, .tls, .proxy, .timeout] {
            let client = RESTClientModel()
            let id = try client.submit(method)
            _ = client.done()
            #expect(client.fail(id, code, precedes: true) == [])
            #expect(client.session.outcome(of: id) != nil)
        }
    }

    @Test(arguments: repeatable + unsafe)
    func laterErrorsAreRepeatedWhenThatIsSafe(method: String) throws {
        let isSafe = RESTRetryTests.repeatable.contains(method)
        for code in [RealtimeError.Code.connectionLost, .timeout] {
            let client = RESTClientModel()
            let id = try client.submit(method)
            _ = client.done()
            #expect(client.fail(id, code) == (isSafe ? [] : ["finish 1 \(code) (1)"]))
            let key = HeaderField(name: "idempotency-key", value: "k")
            let keyed = try client.submit(method, fields: [key]) { $0.order = .never }
            _ = client.done()
            #expect(client.fail(keyed, code) == [])
            // An empty key does not count.
            let empty = HeaderField(name: "Idempotency-Key", value: "")
            let unkeyed = try client.submit(method, fields: [empty]) { $0.order = .never }
            _ = client.done()
            let end = "finish \(unkeyed) \(code) (1)"
            #expect(client.fail(unkeyed, code) == (isSafe ? [] : [end]))
            let forced = try client.submit(method) {
                $0.retriesUnsafe = true
                $0.order = .never
            }
            _ = client.done()
            #expect(client.fail(forced, code) == [])
        }
    }

    @Test(arguments: 200...599) func statusesAreRetriedByTheTable(status: Int) throws {
        if [301, 302, 303, 307, 308, 421].contains(status) { return }
        for (method, isForced) in [
            ("GET", false), ("QUERY", false), ("POST", false), ("POST", true),
        ] {
            let client = RESTClientModel()
            let id = try client.submit(method) { $0.retriesUnsafe = isForced }
            _ = client.done()
            let always = [408, 429, 503].contains(status)
            let whenSafe = [425, 500, 502, 504, 520, 521, 522, 523, 524, 530].contains(status)
            let repeats = always || whenSafe && (method != "POST" || isForced)
            let what = status < 300 ? "ok" : "httpStatus"
            #expect(
                client.answer(id, status) == (repeats ? [] : ["finish 1 \(what) \(status) (1)"]))
        }
    }

    @Test func permanentErrorsAreReported() throws {
        let client = RESTClientModel()
        let first = try client.submit()
        let second = try client.submit()
        _ = client.done()
        #expect(client.fail(first, .tls, precedes: true, isFinal: true) == ["finish 1 tls (1)"])
        #expect(client.fail(second, .tooLarge) == ["finish 2 tooLarge (1)"])
    }

    @Test func retryAfterIsUsedIfItIsLonger() throws {
        let client = RESTClientModel()
        let id = try client.submit()
        _ = client.done()
        #expect(client.answer(id, 429, ["Retry-After": "7"]) == [])
        #expect(client.passToNext() == .seconds(7))
        _ = client.done()
        // Shorter than the backoff's 1 s.
        #expect(client.answer(id, 503, ["Retry-After": "0"]) == [])
        #expect(client.passToNext() == .seconds(1))
    }

    @Test func retryAfterBeyondItsLimitOrTheDeadlineIsReported() throws {
        for (seconds, deadline) in [(61, 0), (31, 30)] {
            let client = RESTClientModel()
            let id = try client.submit { $0.deadline = .seconds(deadline) }
            _ = client.done()
            #expect(
                client.answer(id, 503, ["Retry-After": "\(seconds)"])
                    == ["finish 1 httpStatus 503 (1)"])
        }
    }

    @Test func noDelayStartsThatTheDeadlineWouldCutOff() throws {
        let client = RESTClientModel()
        let id = try client.submit { $0.deadline = .milliseconds(1200) }
        _ = client.done()
        #expect(client.pass(.milliseconds(600)) == [])
        #expect(client.fail(id) == [])
        #expect(client.pass(.milliseconds(500)) == ["start 1 GET http://h/"])
        // 1,100 ms have passed, and the next delay is a second.
        #expect(client.fail(id, .timeout) == ["finish 1 timeout (2)"])
    }

    @Test func theDeadlineEndsAnAttempt() throws {
        let client = RESTClientModel()
        _ = try client.submit { $0.deadline = .seconds(2) }
        _ = client.done()
        #expect(client.pass(.seconds(2)) == ["abort 1", "finish 1 deadline (1)"])
    }

    @Test func anAttemptHasATimeout() throws {
        let client = RESTClientModel()
        let id = try client.submit()
        _ = client.done()
        #expect(client.pass(.milliseconds(4999)) == [])
        #expect(client.pass(.milliseconds(1)) == ["time out 1"])
        #expect(client.fail(id, .timeout) == [])
        #expect(client.passToNext() == .milliseconds(500))
        // The connection may be dead.
        #expect(client.done() == ["start 1 GET http://h/ fresh"])
    }

    @Test func redirectsArePartOfTheAttemptAndItsTime() throws {
        let client = RESTClientModel()
        let id = try client.submit("POST", fields: [HeaderField(name: "X-Key", value: "s")])
        _ = client.done()
        _ = client.pass(.seconds(3))
        #expect(
            client.answer(id, 303, ["Location": "/done"]) == ["start 1 GET http://h/done X-Key=s"])
        #expect(
            client.answer(id, 307, ["Location": "http://other/"]) == ["start 1 GET http://other/"])
        #expect(client.pass(.seconds(2)) == ["time out 1"])
        // Only the last redirect's request is repeated, so the POST is not executed again.
        #expect(client.fail(id, .timeout) == [])
        #expect(client.pass(.seconds(1)) == ["start 1 GET http://other/ fresh"])
        #expect(client.answer(id, 200) == ["finish 1 ok 200 (2)"])
    }

    @Test func redirectsThatCannotBeFollowedAreErrors() throws {
        let client = RESTClientModel()
        var id = try client.submit()
        _ = client.done()
        #expect(client.answer(id, 302) == ["abort 1", "finish 1 redirect 302 (1)"])
        id = try client.submit("GET", "https://h/")
        _ = client.done()
        #expect(
            client.answer(id, 302, ["Location": "http://h/"])
                == ["abort 2", "finish 2 insecureRedirect 302 (1)"])
        id = try client.submit { $0.redirects.maximum = 1 }
        _ = client.done()
        #expect(client.answer(id, 308, ["Location": "/a"]) == ["start 3 GET http://h/a"])
        #expect(
            client.answer(id, 308, ["Location": "/b"]) == ["abort 3", "finish 3 redirect 308 (1)"])
        id = try client.submit { $0.redirects.maximum = 0 }
        _ = client.done()
        #expect(client.answer(id, 308, ["Location": "/a"]) == ["finish 4 httpStatus 308 (1)"])
    }

    @Test func aConsumedBodyCannotBeSentAgain() throws {
        for canRewind in [false, true] {
            let client = RESTClientModel()
            let id = try client.submit("PUT", body: .stream(length: 4), canRewind: canRewind)
            #expect(client.done() == ["start 1 PUT http://h/"])
            // None of the body was used.
            #expect(client.fail(id, .connect, precedes: true) == [])
            #expect(client.pass(.seconds(1)) == ["start 1 PUT http://h/"])
            client.session.bodyUsed(id)
            if canRewind {
                #expect(client.fail(id) == [])
                #expect(client.pass(.seconds(2)) == ["start 1 PUT http://h/ rewinds"])
            } else {
                #expect(client.fail(id) == ["finish 1 connectionLost (2)"])
            }
        }
    }

    @Test func aMisdirectedRequestIsSentOnceOnItsOwnConnection() throws {
        let client = RESTClientModel()
        let id = try client.submit("POST")
        _ = client.done()
        #expect(client.answer(id, 421) == ["start 1 POST http://h/ fresh"])
        #expect(client.answer(id, 421) == ["finish 1 httpStatus 421 (1)"])
    }

    @Test func aConnectionFoundDeadIsReplacedOnceAndNotCounted() throws {
        let client = RESTClientModel()
        let id = try client.submit("POST") { $0.retriesUnsafe = true }
        _ = client.done()
        #expect(client.fail(id, isStale: true) == ["start 1 POST http://h/ fresh"])
        #expect(client.fail(id, isStale: true) == [])
        _ = client.pass(.seconds(1))
        #expect(client.answer(id, 200) == ["finish 1 ok 200 (2)"])
    }

    @Test func aCallerThatGotAHeadGetsNoOther() throws {
        for streams in [false, true] {
            let client = RESTClientModel()
            let id = try client.submit(streamsAnswer: streams)
            _ = client.done()
            #expect(client.head(id, 200) == .deliver)
            #expect(client.fail(id) == (streams ? ["finish 1 connectionLost 200 (1)"] : []))
        }
    }

    @Test func anAnswerThatIsNotTheLastIsNotDelivered() throws {
        let client = RESTClientModel()
        let id = try client.submit { $0.attempts = 2 }
        _ = client.done()
        #expect(client.head(id, 503) == .discard)
        // Its body trickles for longer than the delay, so it is dropped.
        #expect(client.pass(.seconds(1)) == ["abort 1", "start 1 GET http://h/ fresh"])
        #expect(client.head(id, 503) == .deliver)
    }

    @Test func aKeyIsTheSameInEveryAttempt() throws {
        let client = RESTClientModel()
        let id = try client.submit("POST") { $0.addsIdempotencyKey = true }
        let start = "start 1 POST http://h/ Idempotency-Key=key-1"
        #expect(client.done() == [start])
        #expect(client.fail(id) == [])
        #expect(client.pass(.seconds(1)) == [start])
        _ = try client.submit { $0.addsIdempotencyKey = true }
        #expect(client.done() == ["start 2 GET http://h/"])
    }

    @Test func freshCredentialsAreRequestedOnceForAll() throws {
        let client = RESTClientModel()
        client.session.renewsCredentials = true
        client.session.setCredential("Bearer old")
        let first = try client.submit()
        let second = try client.submit()
        let own = try client.submit(fields: [HeaderField(name: "authorization", value: "x")])
        #expect(client.done().first == "start 1 GET http://h/ Authorization=Bearer old")
        #expect(client.answer(first, 401) == ["authorize"])
        #expect(client.answer(second, 401) == [])
        #expect(client.answer(own, 401) == ["finish 3 httpStatus 401 (1)"])
        client.session.setCredential("Bearer new")
        client.session.authorized(true, now: client.now)
        #expect(
            client.done() == [
                "start 1 GET http://h/ Authorization=Bearer new",
                "start 2 GET http://h/ Authorization=Bearer new",
            ])
        #expect(client.answer(first, 200) == ["finish 1 ok 200 (1)"])
        #expect(client.answer(second, 401) == ["finish 2 httpStatus 401 (1)"])
    }

    @Test func refusedCredentialsAreNotSentAgain() throws {
        let client = RESTClientModel { $0.perHost = 1 }
        client.session.renewsCredentials = true
        client.session.setCredential("Bearer old")
        let first = try client.submit()
        #expect(client.done() == ["start 1 GET http://h/ Authorization=Bearer old"])
        let fields = [HeaderField(name: "Authorization", value: "own")]
        _ = try client.submit("POST")
        let own = try client.submit(fields: fields)
        let limited = try client.submit { $0.deadline = .seconds(2) }
        let unwanted = try client.submit { $0.queueTime = .seconds(3) }
        let dropped = try client.submit()
        #expect(
            client.answer(first, 401) == ["authorize", "start 3 GET http://h/ Authorization=own"])
        #expect(client.answer(own, 200) == ["finish 3 ok 200 (1)"])
        client.session.cancel(dropped, now: client.now)
        #expect(client.done() == ["finish 6 cancelled (0)"])
        #expect(client.pass(.seconds(2)) == ["finish \(limited) deadline (0)"])
        #expect(client.pass(.seconds(1)) == ["finish \(unwanted) expired (0)"])
        client.session.setCredential("Bearer new")
        #expect(client.done() == [])
        client.session.authorized(true, now: client.now)
        #expect(client.done() == ["start 1 GET http://h/ Authorization=Bearer new"])
        #expect(
            client.answer(first, 200) == [
                "finish 1 ok 200 (1)", "start 2 POST http://h/ Authorization=Bearer new",
            ])
    }

    @Test func theRequestThatFetchesCredentialsDoesNotWaitForThem() throws {
        let client = RESTClientModel()
        client.session.renewsCredentials = true
        client.session.setCredential("Bearer old")
        let first = try client.submit()
        _ = client.done()
        #expect(client.answer(first, 401) == ["authorize"])
        let token = try client.submit("GET", "http://h/token")
        #expect(client.done() == ["start 2 GET http://h/token Authorization=Bearer old"])
        #expect(client.answer(token, 200) == ["finish 2 ok 200 (1)"])
        client.session.setCredential("Bearer new")
        client.session.authorized(true, now: client.now)
        #expect(client.done() == ["start 1 GET http://h/ Authorization=Bearer new"])
    }

    @Test func aRefusedRequestForCredentialsEndsWithItsDeadline() throws {
        let client = RESTClientModel()
        client.session.renewsCredentials = true
        let first = try client.submit { $0.deadline = .seconds(9) }
        _ = client.done()
        #expect(client.answer(first, 401) == ["authorize"])
        let token = try client.submit { $0.deadline = .seconds(5) }
        _ = client.done()
        #expect(client.answer(token, 401) == [])
        client.now = client.now + .seconds(5)
        client.session.timeReached(client.now)
        guard case .finish(token, let outcome) = client.session.nextAction() else {
            Issue.record("it waits for itself")
            return
        }
        #expect(outcome.error?.code == .deadline)
        #expect(outcome.error?.message.contains("waiting for fresh credentials") == true)
        client.session.authorized(false, now: client.now)
        #expect(client.done() == ["finish 1 auth 401 (1)"])
    }

    @Test func aRedirectWaitsForCredentials() throws {
        let client = RESTClientModel()
        client.session.renewsCredentials = true
        client.session.setCredential("Bearer old")
        let first = try client.submit()
        let second = try client.submit()
        _ = client.done()
        #expect(client.answer(first, 401) == ["authorize"])
        #expect(client.answer(second, 302, ["Location": "/there"]) == [])
        client.session.setCredential("Bearer new")
        client.session.authorized(true, now: client.now)
        #expect(
            client.done() == [
                "start 1 GET http://h/ Authorization=Bearer new",
                "start 2 GET http://h/there Authorization=Bearer new",
            ])
        #expect(client.answer(second, 200) == ["finish 2 ok 200 (1)"])
    }

    @Test func aLackOfCredentialsEndsAllWaitingRequests() throws {
        let client = RESTClientModel { $0.perHost = 1 }
        client.session.renewsCredentials = true
        for _ in 0..<3 { _ = try client.submit() }
        #expect(client.done() == ["start 1 GET http://h/"])
        #expect(client.answer(1, 401) == ["authorize"])
        client.session.authorized(false, now: client.now)
        #expect(client.done() == ["finish 1 auth 401 (1)", "start 2 GET http://h/"])
        #expect(client.answer(2, 401) == ["finish 2 auth 401 (1)", "start 3 GET http://h/"])
        // The origins may differ.
        #expect(client.answer(3, 200) == ["finish 3 ok 200 (1)"])
        let later = try client.submit()
        #expect(client.done() == ["start 4 GET http://h/"])
        #expect(client.answer(later, 401) == ["authorize"])
    }

    @Test func aRefusalOfOlderCredentialsIsReplayedWithTheNew() throws {
        let client = RESTClientModel()
        client.session.renewsCredentials = true
        client.session.setCredential("Bearer old")
        let id = try client.submit()
        _ = client.done()
        client.session.setCredential("Bearer new")
        #expect(client.answer(id, 401) == ["start 1 GET http://h/ Authorization=Bearer new"])
    }

    @Test func settingTheSameCredentialIsNoChange() throws {
        let client = RESTClientModel()
        client.session.renewsCredentials = true
        client.session.setCredential("Bearer old")
        let id = try client.submit()
        _ = client.done()
        client.session.setCredential("Bearer old")
        #expect(client.answer(id, 401) == ["authorize"])
    }

    @Test func withoutFreshCredentialsAllWaitingRequestsFail() throws {
        let client = RESTClientModel()
        client.session.renewsCredentials = true
        let first = try client.submit()
        let second = try client.submit("POST")
        _ = client.done()
        #expect(client.answer(first, 401) == ["authorize"])
        #expect(client.answer(second, 401) == [])
        client.session.authorized(false, now: client.now)
        #expect(client.done() == ["finish 1 auth 401 (1)", "finish 2 auth 401 (1)"])
    }

    @Test func anotherOriginGetsNoCredentialsAndRequestsNone() throws {
        let client = RESTClientModel()
        client.session.renewsCredentials = true
        client.session.setCredential("Bearer t")
        let id = try client.submit()
        _ = client.done()
        #expect(
            client.answer(id, 307, ["Location": "http://other/"]) == ["start 1 GET http://other/"])
        #expect(
            client.answer(id, 307, ["Location": "http://h/"]) == ["start 1 GET http://h/"])
        #expect(client.answer(id, 401) == ["finish 1 httpStatus 401 (1)"])
    }
}
