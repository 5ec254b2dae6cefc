import Session
import Testing
import Wire

/// R8 to R12: order, the queue, the network, cancel and close.
struct RESTQueueTests {
    @Test func orderedRequestsGoOneAfterTheOther() throws {
        let client = RESTClientModel()
        for method in ["POST", "GET", "PUT", "DELETE"] {
            _ = try client.submit(method, "http://\(method)/")
        }
        #expect(client.done() == ["start 1 POST http://POST/", "start 2 GET http://GET/"])
        // While the first request waits for its next attempt, the others wait for it.
        #expect(client.answer(1, 503) == [])
        #expect(client.pass(.seconds(1)) == ["start 1 POST http://POST/ fresh"])
        #expect(client.answer(1, 200) == ["finish 1 ok 200 (2)", "start 3 PUT http://PUT/"])
        #expect(
            client.answer(3, 404) == [
                "finish 3 httpStatus 404 (1)", "start 4 DELETE http://DELETE/",
            ])
    }

    /// Between two requests to one origin, a request to another ended, and the last one was
    /// removed.
    @Test func theLineContinuesAfterARequestThatEndsBeforeItStarts() throws {
        let client = RESTClientModel()
        _ = try client.submit("POST", "http://a/") {
            $0.attemptTimeout = .zero
            $0.deadline = .zero
        }
        _ = try client.submit("POST", "http://b/")
        _ = try client.submit("POST", "http://a/") { $0.deadline = .zero }
        _ = client.done()
        client.now = client.now + .seconds(60)
        #expect(
            client.answer(1, 200) == [
                "finish 1 ok 200 (1)", "finish 2 deadline (0)", "start 3 POST http://a/",
            ])
    }

    @Test func anOriginHasSixExchanges() throws {
        let client = RESTClientModel()
        for _ in 1...8 { _ = try client.submit() }
        _ = try client.submit("GET", "http://other/")
        #expect(client.done().count == 7)
        #expect(client.answer(3, 200) == ["finish 3 ok 200 (1)", "start 7 GET http://h/"])
        // A request that waits for its next attempt gives up its place, and gets the next free one.
        #expect(client.answer(4, 503) == ["start 8 GET http://h/"])
        #expect(client.pass(.seconds(1)) == [])
        #expect(client.answer(5, 200) == ["finish 5 ok 200 (1)", "start 4 GET http://h/ fresh"])
    }

    @Test func requestsThatDoNotCountHaveALimitToo() throws {
        let client = RESTClientModel()
        for _ in 0..<65_536 { _ = try client.submit() }
        _ = client.done()
        _ = try client.submit()
        #expect(client.done() == ["finish 65537 queueFull (0)"])
        #expect(client.answer(1, 200) == ["finish 1 ok 200 (1)", "start 7 GET http://h/"])
        _ = try client.submit()
        #expect(client.done() == [])
    }

    @Test func withoutANetworkRequestsWaitInLine() throws {
        let client = RESTClientModel()
        client.isReachable = false
        client.random = 0.5
        _ = try client.submit("POST")
        _ = try client.submit()
        _ = try client.submit("POST")
        #expect(client.done() == [])
        // The deadline's clock is stopped.
        #expect(client.pass(.seconds(3600)) == [])
        #expect(client.setReachable(true) == [])
        #expect(client.pass(.milliseconds(499)) == [])
        #expect(
            client.pass(.milliseconds(1)) == ["start 1 POST http://h/", "start 2 GET http://h/"])
        #expect(client.answer(1, 200) == ["finish 1 ok 200 (1)", "start 3 POST http://h/"])
    }

    @Test func theQueueHasACapacity() throws {
        let client = RESTClientModel()
        client.isReachable = false
        for _ in 1...100 { _ = try client.submit() }
        #expect(client.done() == [])
        _ = try client.submit()
        #expect(client.done() == ["finish 101 queueFull (0)"])
        client.session.cancel(7, now: client.now)
        #expect(client.done() == ["finish 7 cancelled (0)"])
        _ = try client.submit()
        #expect(client.done() == [])
        _ = try client.submit()
        #expect(client.done() == ["finish 103 queueFull (0)"])
    }

    @Test func theOldestCanBeDroppedInstead() throws {
        let client = RESTClientModel {
            $0.queueCapacity = 2
            $0.overflow = .dropOldest
        }
        client.isReachable = false
        for _ in 1...3 { _ = try client.submit("POST") }
        #expect(client.done() == ["finish 1 queueFull (0)"])
        #expect(client.setReachable(true) == [])
        #expect(client.pass(.zero) == ["start 2 POST http://h/"])
    }

    /// Its line ended with it, and returned with the id of the dropped request.
    @Test func theOldestOfALineMayBeItsLast() throws {
        let client = RESTClientModel {
            $0.queueCapacity = 1
            $0.overflow = .dropOldest
        }
        client.isReachable = false
        _ = try client.submit()
        _ = try client.submit()
        #expect(client.done() == ["finish 1 queueFull (0)"])
        #expect(client.setReachable(true) == [])
        #expect(client.pass(.zero) == ["start 2 GET http://h/"])
    }

    @Test func requestsThatWaitOnlyForAPlaceAreNotLimited() throws {
        let client = RESTClientModel { $0.queueCapacity = 1 }
        for _ in 1...50 { _ = try client.submit() }
        #expect(client.done().count == 6)
        _ = try client.submit("POST", "http://other/")
        _ = try client.submit("POST", "http://other/")
        _ = try client.submit("POST", "http://other/")
        #expect(client.done() == ["start 51 POST http://other/", "finish 53 queueFull (0)"])
    }

    @Test func aRequestThatLosesItsNetworkReturnsToItsPlace() throws {
        let client = RESTClientModel()
        let first = try client.submit("POST")
        _ = try client.submit("POST")
        _ = client.done()
        #expect(client.setReachable(false) == [])
        #expect(client.fail(first, .connect, precedes: true) == [])
        #expect(client.pass(.seconds(100)) == [])
        #expect(client.setReachable(true) == [])
        #expect(client.pass(.zero) == ["start 1 POST http://h/"])
        #expect(client.answer(first, 200) == ["finish 1 ok 200 (1)", "start 2 POST http://h/"])
    }

    @Test func aDelayThatEndsWithoutANetworkWaitsForIt() throws {
        let client = RESTClientModel()
        let id = try client.submit()
        _ = client.done()
        #expect(client.fail(id) == [])
        #expect(client.setReachable(false) == [])
        #expect(client.pass(.seconds(60)) == [])
        #expect(client.setReachable(true) == [])
        #expect(client.pass(.zero) == ["start 1 GET http://h/"])
    }

    @Test func eachWaitForANetworkIsReportedOnce() throws {
        let client = RESTClientModel()
        client.isReachable = false
        let id = try client.submit { $0.deadline = .zero }
        #expect(client.done() == [] && client.waits == [id])
        #expect(client.setReachable(false) == [] && client.waits == [id])
        // In the meantime only.
        #expect(client.setReachable(true) == [])
        #expect(client.setReachable(false) == [] && client.waits == [id, id])
        #expect(client.setReachable(true) == [])
        #expect(client.pass(.zero) == ["start 1 GET http://h/"])
        // An attempt, and a delay, are not waits for a network.
        #expect(client.setReachable(false) == [] && client.waits.count == 2)
        #expect(client.fail(id) == [] && client.waits.count == 2)
        #expect(client.pass(.seconds(1)) == [] && client.waits == [id, id, id])
        #expect(
            client.session.wait(of: id).message
                == "GET http://h/: no network reaches it")
    }

    @Test func whatEndsWithoutANetworkSaysSo() throws {
        let client = RESTClientModel()
        client.isReachable = false
        _ = try client.submit { $0.deadline = .seconds(3) }
        _ = try client.submit { $0.queueTime = .seconds(5) }
        client.now = client.now + .seconds(5)
        client.session.timeReached(client.now)
        var texts: [String] = []
        while let action = client.session.nextAction() {
            if case .finish(_, let outcome) = action { texts.append(outcome.error?.message ?? "") }
        }
        #expect(texts.count == 2)
        #expect(texts.allSatisfy { $0.hasSuffix(", waiting for a network") }, "\(texts)")
    }

    @Test func aDeadlineThatWasSetAlwaysCounts() throws {
        let client = RESTClientModel()
        client.isReachable = false
        _ = try client.submit { $0.deadline = .seconds(3) }
        #expect(client.pass(.milliseconds(2999)) == [])
        #expect(client.pass(.milliseconds(1)) == ["finish 1 deadline (0)"])
        // Also the default, if it is set for a request.
        _ = try client.submit {
            $0.isOfRequest = true
            $0.deadline = .seconds(30)
        }
        #expect(client.pass(.seconds(30)) == ["finish 2 deadline (0)"])
    }

    @Test func aDeadlineThatWasSetCountsWhenTheNetworkIsLost() throws {
        let client = RESTClientModel()
        _ = try client.submit { $0.deadline = .seconds(3) }
        #expect(client.done() == ["start 1 GET http://h/"])
        _ = client.setReachable(false)
        #expect(client.pass(.seconds(3)).last == "finish 1 deadline (1)")
    }

    @Test func theDefaultDeadlineCountsOnlyTimeWithANetwork() throws {
        let client = RESTClientModel()
        _ = try client.submit { $0.attemptTimeout = .zero }
        _ = client.done()
        _ = client.pass(.seconds(27))
        #expect(client.pass(.seconds(2)) == [])
        _ = client.setReachable(false)
        #expect(client.pass(.seconds(50)) == [])
        _ = client.setReachable(true)
        #expect(client.pass(.milliseconds(999)) == [])
        #expect(client.pass(.milliseconds(1)) == ["abort 1", "finish 1 deadline (1)"])
    }

    @Test func theQueuesTimeoutAlwaysRuns() throws {
        let client = RESTClientModel()
        client.isReachable = false
        _ = try client.submit { $0.queueTime = .seconds(5) }
        #expect(client.pass(.seconds(4)) == [])
        #expect(client.pass(.seconds(1)) == ["finish 1 expired (0)"])
    }

    @Test func aStartedRequestDoesNotExpire() throws {
        let client = RESTClientModel()
        _ = try client.submit {
            $0.queueTime = .seconds(1)
            $0.attemptTimeout = .zero
        }
        _ = client.done()
        #expect(client.pass(.seconds(2)) == [])
    }

    @Test func thousandsThatEndTogetherDoNotRecurse() throws {
        let client = RESTClientModel()
        for _ in 1...20_000 {
            _ = try client.submit { $0.deadline = .seconds(1) }
        }
        _ = client.done()
        client.now = client.now + .seconds(2)
        client.session.cancel(1, now: client.now)
        let ended = client.done().filter { $0.hasPrefix("finish") }
        #expect(ended.count == 20_000 - 5)
    }

    @Test func cancelIsReportedOnce() throws {
        let client = RESTClientModel()
        let first = try client.submit("POST")
        let second = try client.submit("POST")
        _ = client.done()
        client.session.cancel(first, now: client.now)
        #expect(
            client.done() == ["abort 1", "finish 1 cancelled (1)", "start 2 POST http://h/"])
        client.session.cancel(first, now: client.now)
        #expect(client.done() == [])
        // Events of the cancelled exchange are ignored.
        #expect(client.answer(first, 200) == [])
        #expect(client.answer(second, 503) == [])
        client.session.cancel(second, now: client.now)
        #expect(client.done() == ["finish 2 cancelled 503 (1)"])
        #expect(client.passToNext() == nil)
    }

    @Test func closeEndsAllInOrder() throws {
        let client = RESTClientModel()
        _ = try client.submit("POST")
        _ = try client.submit("POST")
        _ = try client.submit()
        _ = client.done()
        client.session.close()
        #expect(
            client.done() == [
                "abort 1", "finish 1 closed (1)", "finish 2 closed (0)", "abort 3",
                "finish 3 closed (1)",
            ])
        _ = try client.submit()
        #expect(client.done() == ["finish 4 closed (0)"])
        #expect(client.passToNext() == nil)
    }

    @Test(arguments: [
        ("http://h/api", "users", "http://h/api/users"),
        ("http://h/api/", "/users?x=1", "http://h/api/users?x=1"),
        ("http://h", "", "http://h/"),
        ("http://h/api", "?x=1", "http://h/api?x=1"),
        ("http://h/api", "http://other/", "http://other/"),
        ("http://h/api", "a:b", "http://h/api/a:b"),
        ("http://[fe80::1]:81/", "a", "http://[fe80::1]:81/a"),
    ])
    func pathsAreBelowTheBase(base: String, path: String, whole: String) throws {
        var configuration = RESTConfiguration()
        try configuration.setBase(base)
        #expect(try configuration.base.url(of: path).text == whole)
    }

    @Test func theDeadlinesErrorNamesTheBlockingRequest() throws {
        let client = RESTClientModel()
        _ = try client.submit("POST", "http://h/chat?secret") { $0.deadline = .zero }
        _ = try client.submit("POST", "http://h/log") { $0.deadline = .seconds(3) }
        _ = try client.submit("POST", "http://h/late") { $0.queueTime = .seconds(3) }
        _ = client.done()
        client.now = client.now + .seconds(3)
        client.session.timeReached(client.now)
        var told: [String] = []
        while let action = client.session.nextAction() {
            if case .finish(_, let outcome) = action { told.append(outcome.error?.message ?? "") }
        }
        let behind = ", waiting for the end of POST http://h/chat (ordered)"
        #expect(
            told == [
                "POST http://h/log did not end within 3 s (deadline)" + behind,
                "POST http://h/late could not begin within 3 s (queueTime)" + behind,
            ])
    }

    @Test func theBaseGivesItsCredentialsToItsPaths() throws {
        var configuration = RESTConfiguration()
        try configuration.setBase("http://u:p@h/")
        #expect(try configuration.base.url(of: "a").user == "u")
        #expect(throws: RealtimeError.self) { try configuration.base.url(of: "ftp://h/a") }
        #expect(throws: RealtimeError.self) { try RESTConfiguration().base.url(of: "a") }
    }

    @Test func aRequestsHeadersReplaceTheClients() throws {
        var configuration = RESTConfiguration()
        try configuration.addHeader(name: "Accept", value: "a")
        try configuration.addHeader(name: "X-One", value: "1")
        let url = try HTTPURL(parsing: "http://h/", as: .http)
        var own = HTTPRequest("GET", url, fields: [HeaderField(name: "accept", value: "b")])
        own.lay(over: configuration.fields(isTrusted: true))
        let names = own.fields.map { "\($0.name)=\($0.value)" }
        #expect(names == ["X-One=1", "accept=b"])
        #expect(throws: RealtimeError.self) {
            try configuration.addHeader(name: "Upgrade", value: "x")
        }
    }

    @Test func hostIsSetOnce() throws {
        var configuration = RESTConfiguration()
        try configuration.addHeader(name: "Host", value: "a.test:81")
        #expect(throws: RealtimeError.self) {
            try configuration.addHeader(name: "host", value: "b.test")
        }
        try configuration.setHeader(name: "HOST", value: "c.test")
        #expect(configuration.headers.all == [HeaderField(name: "HOST", value: "c.test")])
        // Only the client's own server gets it.
        #expect(configuration.fields(isTrusted: false).isEmpty)
        try configuration.setHeader(name: "host", value: nil)
        try configuration.addHeader(name: "Host", value: "[::1]")
    }
}
