import Session
import Testing
import Wire

/// R4 and R6: what is sent again over which connection.
struct RESTRepeatTests {
    /// The server may have acted on it before it ended the connection (RFC 9110 §9.2.2).
    @Test(arguments: ["POST", "PATCH", "LOCK"])
    func aRequestThatMayHaveBeenPerformedIsNotSentAgain(_ method: String) throws {
        let client = RESTClientModel()
        let id = try client.submit(method)
        _ = client.done()
        #expect(client.fail(id, isStale: true) == ["finish 1 connectionLost (1)"])
        // After a redirect by 307 on the same connection, too.
        let other = try client.submit(method)
        _ = client.done()
        #expect(
            client.answer(other, 307, ["Location": "/go"]) == ["start 2 \(method) http://h/go"])
        #expect(client.fail(other, isStale: true) == ["finish 2 connectionLost (1)"])
    }

    @Test(arguments: ["GET", "HEAD", "PUT", "DELETE"])
    func anIdempotentRequestIsSentAgainAtOnce(_ method: String) throws {
        let client = RESTClientModel()
        let id = try client.submit(method)
        _ = client.done()
        #expect(client.fail(id, isStale: true) == ["start 1 \(method) http://h/ fresh"])
    }

    @Test func aRequestThatWasNotSentIsSentOnANewConnection() throws {
        let client = RESTClientModel()
        let id = try client.submit("POST")
        _ = client.done()
        let again = client.fail(id, precedes: true, isStale: true)
        #expect(again == ["start 1 POST http://h/ fresh"])
        let keyed = try client.submit(
            "POST", fields: [HeaderField(name: "Idempotency-Key", value: "1")])
        #expect(client.answer(id, 200).first == "finish 1 ok 200 (1)")
        #expect(
            client.fail(keyed, isStale: true)
                == ["start 2 POST http://h/ Idempotency-Key=1 fresh"])
    }

    /// The name is looked up again (R4).
    @Test func afterATemporaryFailureTheConnectionIsNew() throws {
        for status in [408, 425, 500, 502, 503, 504, 520, 530] {
            let client = RESTClientModel()
            let id = try client.submit()
            _ = client.done()
            #expect(client.answer(id, status) == [])
            #expect(client.pass(.seconds(1)) == ["start 1 GET http://h/ fresh"])
        }
        let client = RESTClientModel()
        let id = try client.submit()
        _ = client.done()
        #expect(client.answer(id, 429) == [])
        #expect(client.pass(.seconds(1)) == ["start 1 GET http://h/"])
    }
}
