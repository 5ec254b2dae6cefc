import Session
import Testing
import Wire

/// The attempt's timeout applies only while no bytes flow, in a request's body and in a response
/// that is streamed to the caller.
@Suite struct RESTStandstillTests {
    @Test func aStreamedAnswerMayTakeLongerThanAnAttempt() throws {
        let client = RESTClientModel()
        let id = try client.submit(streamsAnswer: true)
        #expect(client.pass(.milliseconds(4999)) == ["start 1 GET http://h/"])
        #expect(client.head(id, 200) == .deliver)
        for _ in 0..<100 {
            #expect(client.pass(.milliseconds(4999)) == [])
            client.session.receivedBytes(of: id, now: client.now)
        }
        #expect(client.pass(.milliseconds(4999)) == [])
        #expect(client.pass(.milliseconds(1)) == ["time out 1"])
        #expect(client.fail(id, .timeout) == ["finish 1 timeout 200 (1)"])
    }

    @Test func aBufferedAnswerMustEndInTime() throws {
        let client = RESTClientModel()
        let id = try client.submit()
        _ = client.done()
        #expect(client.head(id, 200) == .deliver)
        #expect(client.pass(.seconds(4)) == [])
        client.session.receivedBytes(of: id, now: client.now)
        #expect(client.pass(.seconds(1)) == ["time out 1"])
    }

    @Test func aRequestsBodyMayTakeLongerThanAnAttempt() throws {
        let client = RESTClientModel()
        let id = try client.submit("PUT", body: .stream(length: nil)) { $0.deadline = .zero }
        _ = client.done()
        for _ in 0..<100 {
            #expect(client.pass(.milliseconds(4999)) == [])
            client.session.sent(id, now: client.now)
        }
        #expect(client.pass(.milliseconds(5000)) == ["time out 1"])
    }

    /// libcurl has passed the whole body to the kernel at once, and the driver finds at the end of
    /// the attempt's time that the kernel has sent more of it since.
    @Test func aBodyInTheKernelMayTakeLongerThanAnAttempt() throws {
        let client = RESTClientModel()
        let id = try client.submit("PUT", body: .bytes([1])) { $0.deadline = .zero }
        _ = client.done()
        for _ in 0..<10 {
            #expect(client.pass(.seconds(5)) == ["time out 1"])
            let continues = client.session.continues(id, moved: client.now, now: client.now)
            #expect(continues)
        }
        let moved = client.now
        #expect(client.pass(.seconds(5)) == ["time out 1"])
        // All of it had arrived before the attempt's time began anew.
        let continues = client.session.continues(id, moved: moved, now: client.now)
        #expect(!continues)
        #expect(client.fail(id, .timeout) == [])
        #expect(client.pass(.milliseconds(500)) == ["start 1 PUT http://h/ fresh"])
    }

    @Test func aRequestsOwnDeadlineStillApplies() throws {
        let client = RESTClientModel()
        let id = try client.submit(streamsAnswer: true) {
            $0.isOfRequest = true
            $0.deadline = .seconds(30)
        }
        _ = client.done()
        _ = client.head(id, 200)
        for _ in 0..<9 {
            #expect(client.pass(.seconds(3)) == [])
            client.session.receivedBytes(of: id, now: client.now)
        }
        #expect(client.pass(.seconds(3)) == ["abort 1", "finish 1 deadline 200 (1)"])
    }

    /// The client's deadline counts until the final response begins: a retried request has no more
    /// time than others.
    @Test func theClientsDeadlineAppliesBeforeAStream() throws {
        let client = RESTClientModel()
        let id = try client.submit(streamsAnswer: true) { $0.deadline = .seconds(7) }
        _ = client.done()
        #expect(client.answer(id, 503) == [])
        #expect(client.pass(.milliseconds(500)) == ["start 1 GET http://h/ fresh"])
        #expect(client.pass(.seconds(5)) == ["time out 1"])
        #expect(client.fail(id, .timeout) == [])
        #expect(client.pass(.seconds(1)) == ["start 1 GET http://h/ fresh"])
        #expect(client.pass(.milliseconds(500)) == ["abort 1", "finish 1 deadline (3)"])
    }

    @Test func aReturningNetworkDoesNotRestoreTheClientsDeadline() throws {
        let client = RESTClientModel()
        let id = try client.submit(streamsAnswer: true) { $0.attemptTimeout = .zero }
        _ = client.done()
        _ = client.head(id, 200)
        _ = client.setReachable(false)
        _ = client.setReachable(true)
        #expect(client.pass(.seconds(1000)) == [])
        client.session.ended(id, nil, now: client.now, random: 0)
        #expect(client.done() == ["finish 1 ok 200 (1)"])
    }

    @Test func theClientsDeadlineDoesNotCutALongerAttempt() throws {
        var policy = RESTPolicy()
        policy.attemptTimeout = .seconds(60)
        #expect(policy.latestEnd == .seconds(30), "it is the client's")
        policy.isOfRequest = true
        policy.attemptTimeout = .seconds(60)
        #expect(policy.latestEnd == .seconds(60))
        policy.attemptTimeout = .zero
        #expect(policy.latestEnd == .zero, "an attempt without a limit is longer than any")
        policy.deadline = .seconds(10)
        policy.attemptTimeout = .seconds(20)
        #expect(policy.latestEnd == .seconds(10))
        policy = RESTPolicy()
        policy.deadline = .zero
        policy.isOfRequest = true
        policy.attemptTimeout = .seconds(60)
        #expect(policy.latestEnd == .zero)
    }

    @Test func aPauseIsNotAStandstill() throws {
        let client = RESTClientModel()
        let id = try client.submit(streamsAnswer: true)
        _ = client.done()
        _ = client.head(id, 200)
        client.session.setHeld(id, true, now: client.now)
        for _ in 0..<20 { #expect(client.pass(.seconds(4)) == []) }
        client.session.setHeld(id, false, now: client.now)
        #expect(client.pass(.milliseconds(4999)) == [])
        #expect(client.pass(.milliseconds(1)) == ["time out 1"])
    }

    /// The rest is decoded when the loop has time, which is not the server's fault.
    @Test func aReceivedAnswerIsInTime() throws {
        let client = RESTClientModel()
        let id = try client.submit { $0.deadline = .seconds(9) }
        _ = client.done()
        _ = client.head(id, 200)
        client.session.answerCame(id)
        #expect(client.pass(.seconds(20)) == [])
        client.session.ended(id, nil, now: client.now, random: 0)
        #expect(client.done() == ["finish 1 ok 200 (1)"])
    }

    @Test func aDecodingFailureRestoresTheDeadline() throws {
        let client = RESTClientModel()
        let id = try client.submit { $0.deadline = .seconds(9) }
        _ = client.done()
        _ = client.head(id, 200)
        client.session.answerCame(id)
        _ = client.pass(.seconds(8))
        #expect(client.fail(id, .protocolViolation) == [])
        #expect(client.pass(.milliseconds(500)) == ["start 1 GET http://h/"])
        #expect(client.pass(.milliseconds(500)) == ["abort 1", "finish 1 deadline (2)"])
    }

    @Test func theNextAttemptHasItsOwnTime() throws {
        let client = RESTClientModel()
        let id = try client.submit("PUT", body: .bytes([1])) { $0.deadline = .zero }
        _ = client.done()
        _ = client.pass(.seconds(4))
        client.session.sent(id, now: client.now)
        #expect(client.answer(id, 503) == [])
        #expect(client.pass(.milliseconds(500)) == ["start 1 PUT http://h/ fresh"])
        #expect(client.pass(.milliseconds(4999)) == [])
        #expect(client.pass(.milliseconds(1)) == ["time out 1"])
    }

    // MARK: A 2xx whose body is damaged

    @Test(arguments: [("POST", false), ("POST", true), ("PATCH", true)])
    func executedRequestsAreNotSentAgain(method: String, isKeyed: Bool) throws {
        let client = RESTClientModel()
        let fields = isKeyed ? [HeaderField(name: "Idempotency-Key", value: "k")] : []
        let id = try client.submit(method, fields: fields)
        _ = client.done()
        #expect(client.head(id, 201) == .deliver)
        #expect(client.fail(id, .protocolViolation) == ["finish 1 protocolViolation 201 (1)"])
    }

    @Test func repeatableRequestsAreRepeated() throws {
        for (method, status, code) in [
            ("GET", 200, .protocolViolation), ("PUT", 200, .protocolViolation),
            ("POST", 200, .connectionLost), ("POST", 404, .protocolViolation),
        ] as [(String, Int, RealtimeError.Code)] {
            let client = RESTClientModel()
            let key = HeaderField(name: "Idempotency-Key", value: "k")
            let id = try client.submit(method, fields: [key])
            _ = client.done()
            _ = client.head(id, status)
            #expect(client.fail(id, code) == [], "\(method) \(status) \(code)")
            #expect(client.pass(.milliseconds(500)).count == 1)
        }
    }

    /// The head was never delivered, but it shows that the server has executed the request.
    @Test func theHeadOfAnAnswerWithoutFramingCounts() throws {
        let refused = HTTPFailure(
            RealtimeError(.protocolViolation, "two different Content-Lengths"),
            head: ResponseHead(status: 200))
        for needsHeadAlone in [false, true] {
            let client = RESTClientModel()
            let id = try client.submit("POST") {
                $0.needsHeadAlone = needsHeadAlone
                $0.addsIdempotencyKey = true
            }
            _ = client.done()
            client.session.ended(id, refused, now: client.now, random: 0)
            let end = needsHeadAlone ? "ok" : "protocolViolation"
            #expect(client.done() == ["finish 1 \(end) 200 (1)"])
        }
        let client = RESTClientModel()
        let id = try client.submit()
        _ = client.done()
        client.session.ended(id, refused, now: client.now, random: 0)
        #expect(client.pass(.milliseconds(500)) == ["start 1 GET http://h/"])
    }

    @Test func aHeadIsEnoughIfTheBodyIsUnwanted() throws {
        for code in [.protocolViolation, .connectionLost, .timeout] as [RealtimeError.Code] {
            let client = RESTClientModel()
            let id = try client.submit("POST") {
                $0.needsHeadAlone = true
                $0.addsIdempotencyKey = true
            }
            _ = client.done()
            _ = client.head(id, 204)
            #expect(client.fail(id, code) == ["finish 1 ok 204 (1)"])
        }
        let client = RESTClientModel()
        let id = try client.submit("POST") { $0.needsHeadAlone = true }
        _ = client.done()
        _ = client.head(id, 400)
        #expect(client.fail(id, .connectionLost) == ["finish 1 connectionLost 400 (1)"])
    }
}
