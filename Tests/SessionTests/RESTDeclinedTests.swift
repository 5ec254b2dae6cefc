import Session
import Testing
import Wire

/// The attempt's time ends while the body of a redirect, a 401 or a 421 is discarded.
@Suite struct RESTDeclinedTests {
    @Test(arguments: [
        ("POST", 303, "GET"), ("POST", 301, "GET"), ("POST", 302, "GET"), ("PATCH", 303, "GET"),
        ("POST", 307, "POST"), ("PATCH", 308, "PATCH"), ("GET", 301, "GET"),
    ])
    func redirectedRequestsAreSentAfterTheTimeout(
        method: String, status: Int, follows: String
    ) throws {
        let client = RESTClientModel()
        let id = try client.submit(method, body: .bytes([1]))
        _ = client.done()
        #expect(client.head(id, status, ["Location": "/there"]) == .discard)
        #expect(client.pass(.seconds(5)) == ["time out 1"])
        #expect(client.fail(id, .timeout) == [])
        #expect(
            client.pass(.milliseconds(500)) == ["start 1 \(follows) http://h/there fresh"])
        #expect(client.answer(id, 200) == ["finish 1 ok 200 (2)"])
    }

    @Test func aRefusalsBodyIsNotAwaited() throws {
        let client = RESTClientModel()
        client.session.renewsCredentials = true
        let id = try client.submit("POST")
        _ = client.done()
        #expect(client.head(id, 421) == .discard)
        #expect(client.pass(.seconds(5)) == ["time out 1"])
        #expect(client.fail(id, .timeout) == ["start 1 POST http://h/ fresh"])
        #expect(client.head(id, 401) == .discard)
        #expect(client.pass(.seconds(5)) == ["time out 1"])
        #expect(client.fail(id, .timeout) == ["authorize"])
        client.session.setCredential("Bearer new")
        client.session.authorized(true, now: client.now)
        #expect(client.done() == ["start 1 POST http://h/ Authorization=Bearer new fresh"])
        #expect(client.answer(id, 200) == ["finish 1 ok 200 (1)"])
    }

    @Test func noAttemptIsAdded() throws {
        let client = RESTClientModel()
        let id = try client.submit("POST") { $0.attempts = 1 }
        _ = client.done()
        _ = client.head(id, 303, ["Location": "/there"])
        _ = client.pass(.seconds(5))
        #expect(client.fail(id, .timeout) == ["finish 1 timeout 303 (1)"])
    }
}
