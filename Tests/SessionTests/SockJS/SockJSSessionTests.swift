import Session
import Testing
import Wire

private func at(_ seconds: Double) -> Instant {
    Instant(nanoseconds: UInt64(seconds * 1_000_000_000))
}

private func body(_ messages: String...) -> [UInt8] {
    SockJSBody.bytes(of: messages.map { Array($0.utf8) })
}

/// A session and its server. The time is `now`.
private struct Conversation {
    var session = SockJSSession(name: "example.com:80", unsentLimit: 1000)
    var now = at(0)

    /// A session that is open and polls.
    static func open() -> Conversation {
        var talk = Conversation()
        talk.session.start(now: talk.now)
        #expect(talk.actions() == [.poll])
        talk.frame("o\n")
        #expect(talk.actions() == [.opened, .poll])
        return talk
    }

    mutating func actions() -> [SockJSSession.Action] {
        var actions: [SockJSSession.Action] = []
        while let action = session.nextAction() { actions.append(action) }
        return actions
    }

    mutating func frame(_ text: String) { answer(.poll, 200, text) }

    mutating func answer(_ request: SockJSAction, _ status: Int, _ text: String = "") {
        Array(text.utf8).withUnsafeBytes {
            session.answered(request, ResponseHead(status: status, reason: ""), $0, now: now)
        }
    }

    mutating func send(_ text: String) { session.send(Array(text.utf8), now: now) }

    /// The only action, which is the end.
    mutating func end(_ location: SourceLocation = #_sourceLocation) throws -> DDPSocketEnd {
        let actions = actions()
        #expect(actions.count == 1, "\(actions)", sourceLocation: location)
        guard case .ended(let end)? = actions.last else {
            Issue.record("it has not ended", sourceLocation: location)
            return DDPSocketEnd()
        }
        #expect(session.wakeUp == nil, sourceLocation: location)
        return end
    }
}

struct SockJSSessionTests {
    @Test func noFrameIsRequestedDuringAPause() throws {
        var talk = Conversation.open()
        talk.session.setPaused(true, now: talk.now)
        talk.frame("a[\"1\"]\n")
        #expect(talk.actions() == [.received([Array("1".utf8)])])
        // Nor is there a limit for what is not requested. Messages are sent.
        #expect(talk.session.wakeUp == nil)
        talk.send("2")
        #expect(talk.actions() == [.send(body("2"))])
        talk.now = at(1000)
        talk.answer(.send, 204)
        talk.session.setPaused(false, now: talk.now)
        #expect(talk.actions() == [.poll])
        #expect(talk.session.wakeUp == at(1000) + SockJSSession.silenceLimit)
        // A pause that ends before the frame has come changes nothing.
        talk.session.setPaused(true, now: talk.now)
        talk.session.setPaused(false, now: talk.now)
        #expect(talk.actions() == [])
        talk.session.setPaused(true, now: talk.now)
        talk.frame("h\n")
        talk.now = at(1001)
        talk.session.timeReached(talk.now)
        #expect(talk.actions() == [])
        talk.session.close(now: talk.now)
        _ = try talk.end()
        talk.session.setPaused(false, now: talk.now)
        #expect(talk.actions() == [])
    }

    @Test func eachFrameIsFollowedByAPoll() {
        var talk = Conversation.open()
        talk.frame("a[\"1\",\"2\"]\n")
        #expect(talk.actions() == [.received([[0x31], [0x32]]), .poll])
        talk.now = at(1)
        talk.frame("h\n")
        #expect(talk.actions() == [.poll])
        talk.now = at(2)
        talk.frame("a[]\n")
        #expect(talk.actions() == [.poll])
    }

    @Test func oneRequestAtATimeSendsWhatWaits() {
        var talk = Conversation.open()
        talk.send("1")
        #expect(talk.actions() == [.send(body("1"))])
        talk.send("2")
        talk.send("3")
        #expect(talk.actions() == [])
        talk.answer(.send, 204)
        #expect(talk.actions() == [.send(body("2", "3"))])
        talk.answer(.send, 200)
        #expect(talk.actions() == [])
        talk.send("4")
        #expect(talk.actions() == [.send(body("4"))])
    }

    @Test func messagesWaitForTheSession() {
        var talk = Conversation()
        talk.session.start(now: talk.now)
        talk.send("1")
        #expect(talk.actions() == [.poll])
        talk.frame("o")
        #expect(talk.actions() == [.opened, .send(body("1")), .poll])
    }

    @Test func aBodyHasALimitUnlessItIsOneMessage() {
        var talk = Conversation.open()
        talk.session = SockJSSession(name: "", unsentLimit: 10 << 20)
        talk.session.start(now: talk.now)
        talk.frame("o")
        _ = talk.actions()
        let half = String(repeating: "x", count: SockJSSession.bodyBytes / 2)
        for message in ["1", half, half, half, half + half + half] { talk.send(message) }
        #expect(talk.actions() == [.send(body("1"))])
        talk.answer(.send, 204)
        #expect(talk.actions() == [.send(body(half, half))])
        talk.answer(.send, 204)
        #expect(talk.actions() == [.send(body(half))])
        talk.answer(.send, 204)
        #expect(talk.actions() == [.send(body(half + half + half))])
    }

    @Test func theBytesThatWaitAreLimited() throws {
        var talk = Conversation.open()
        // A single message may be longer.
        talk.send(String(repeating: "x", count: 2000))
        #expect(talk.actions().count == 1)
        talk.answer(.send, 204)
        talk.send(String(repeating: "x", count: 600))
        talk.send(String(repeating: "x", count: 400))
        #expect(talk.actions().count == 1)
        talk.send("x")
        #expect(try talk.end().error?.code == .bufferFull)
    }

    @Test func aFrameThatCannotBeReadEndsTheSession() throws {
        for text in ["", "x", "a[1]", "<html>"] {
            var talk = Conversation.open()
            talk.frame(text)
            let error = try #require(try talk.end().error)
            #expect(error.code == .protocolViolation)
            #expect(error.message.hasPrefix("example.com:80: "))
        }
    }

    @Test(arguments: ["a[\"x\"]", "<!DOCTYPE html>", ""])
    func aServerThatDoesNotOpenTheSessionRefusesIt(answer: String) throws {
        var talk = Conversation()
        talk.session.start(now: talk.now)
        _ = talk.actions()
        talk.now = at(25)
        talk.frame("h")
        #expect(talk.actions() == [.poll])
        talk.frame(answer)
        let error = try #require(try talk.end().error)
        #expect(error.code == .handshake)
        #expect(error.message.hasPrefix("example.com:80 does not answer as a SockJS server: "))
    }

    @Test func aSecondOpenFrameMeansThatTheServerForgotTheSession() throws {
        var talk = Conversation.open()
        talk.frame("o")
        #expect(try talk.end().error?.code == .connectionLost)
    }

    @Test func aCloseFrameEndsTheSessionAfterEarlierMessages() throws {
        var talk = Conversation.open()
        talk.frame("a[\"x\"]")
        #expect(talk.session.nextAction() == .received([[0x78]]))
        talk.send("y")
        talk.frame("c[3000,\"Go away!\"]")
        // Neither polls nor sends any more.
        #expect(try talk.end() == DDPSocketEnd(closeCode: 3000, reason: "Go away!"))
        talk.frame("a[\"x\"]")
        talk.send("z")
        #expect(talk.actions() == [])
    }

    @Test func aServerThatForgotTheSessionAnswers404() throws {
        var talk = Conversation.open()
        talk.send("x")
        _ = talk.actions()
        talk.answer(.send, 404, "not found")
        let error = try #require(try talk.end().error)
        #expect(error.code == .connectionLost)
        #expect(error.response?.status == 404)
    }

    @Test func aServerWithoutSockJSRefusesTheFirstPoll() throws {
        var talk = Conversation()
        talk.session.start(now: talk.now)
        _ = talk.actions()
        talk.answer(.poll, 404, "not found")
        let error = try #require(try talk.end().error)
        #expect(error.code == .httpStatus)
        #expect(error.response?.body == Array("not found".utf8))
    }

    @Test func aFailedRequestEndsTheSession() throws {
        var talk = Conversation.open()
        let error = RealtimeError(.connectionLost, "reset")
        talk.session.failed(error)
        #expect(try talk.end() == DDPSocketEnd(error: error))
    }

    @Test(arguments: ["h\n", "a[]\n"])
    func aServerThatAnswersAtOnceWithoutMessagesIsAskedAfterAPause(answer: String) {
        var talk = Conversation.open()
        talk.now = at(0.04)
        talk.frame(answer)
        #expect(talk.actions() == [] && talk.session.wakeUp == at(0.1))
        talk.session.timeReached(at(0.099))
        #expect(talk.actions() == [])
        talk.session.timeReached(at(0.1))
        #expect(talk.actions() == [.poll] && talk.session.wakeUp == at(100.1))
        // Messages are followed at once.
        talk.now = at(0.11)
        talk.frame("a[\"1\"]\n")
        #expect(talk.actions().last == .poll)
    }

    @Test func aServerThatAlwaysAnswersAtOnceMeetsACeiling() {
        var talk = Conversation.open()
        // Two polls have gone out.
        for _ in 2..<1000 {
            talk.frame("a[\"1\"]\n")
            #expect(talk.actions().last == .poll)
        }
        talk.frame("a[\"1\"]\n")
        #expect(talk.actions().count == 1 && talk.session.wakeUp == at(0.01))
        talk.session.timeReached(at(0.01))
        #expect(talk.actions() == [.poll])
    }

    @Test func silenceEndsTheSession() throws {
        var talk = Conversation.open()
        #expect(talk.session.wakeUp == at(100))
        talk.now = at(45)
        talk.frame("h")
        _ = talk.actions()
        #expect(talk.session.wakeUp == at(145))
        talk.session.heard(now: at(50))
        talk.session.timeReached(at(149))
        #expect(talk.actions() == [])
        talk.session.timeReached(at(150))
        #expect(try talk.end().error?.code == .timeout)
    }

    @Test func aRequestThatSendsIsNotAwaitedForever() throws {
        var talk = Conversation.open()
        talk.now = at(10)
        talk.send("x")
        _ = talk.actions()
        talk.now = at(60)
        talk.frame("h")
        _ = talk.actions()
        #expect(talk.session.wakeUp == at(110))
        talk.session.timeReached(at(110))
        #expect(try talk.end().error?.message.contains("did not answer") == true)
    }

    /// A large body over a slow link takes longer than an answer may take.
    @Test func aRequestThatArrivesSlowlyIsAwaited() throws {
        var talk = Conversation.open()
        talk.send(String(repeating: "x", count: 900))
        _ = talk.actions()
        for step in 1...5 {
            talk.session.arrived(UInt64(step) * 100, now: at(Double(step) * 90))
            talk.session.heard(now: at(Double(step) * 90))
            talk.session.timeReached(at(Double(step) * 90 + 99))
            #expect(talk.actions() == [])
        }
        // Nothing more arrives, though the server still sends.
        talk.session.arrived(500, now: at(540))
        talk.session.heard(now: at(540))
        talk.session.timeReached(at(550))
        #expect(try talk.end().error?.message.contains("did not answer") == true)
    }

    @Test func messagesCountWhileTheyArrive() {
        var talk = Conversation.open()
        #expect(talk.session.sentBytes == SentBytes())
        talk.send("0123456789")
        talk.send("waits")
        #expect(talk.session.sentBytes == SentBytes(queued: 15, arrived: 0))
        let length = UInt64(body("0123456789").count)
        talk.session.arrived(length / 2, now: at(1))
        #expect(talk.session.sentBytes == SentBytes(queued: 15, arrived: 5))
        talk.session.arrived(length * 2, now: at(2))
        #expect(talk.session.sentBytes == SentBytes(queued: 15, arrived: 10))
        talk.answer(.send, 204)
        #expect(talk.session.sentBytes == SentBytes(queued: 15, arrived: 10))
    }

    @Test func closingSendsWhatWaits() throws {
        var talk = Conversation.open()
        talk.send("1")
        talk.send("2")
        talk.session.close(now: talk.now)
        talk.send("too late")
        #expect(talk.actions() == [.send(body("1"))])
        talk.answer(.send, 204)
        // The server must not lose its receiver before it has read the rest.
        talk.frame("a[\"ignored\"]")
        #expect(talk.actions() == [.send(body("2")), .poll])
        talk.answer(.send, 204)
        #expect(try talk.end() == DDPSocketEnd())
    }

    @Test func closingDoesNotTakeLong() throws {
        var talk = Conversation.open()
        talk.send("1")
        talk.session.close(now: at(1))
        _ = talk.actions()
        #expect(talk.session.wakeUp == at(6))
        talk.session.timeReached(at(6))
        #expect(try talk.end() == DDPSocketEnd())
    }

    @Test func closingWaitsWhileMessagesArrive() throws {
        var talk = Conversation.open()
        talk.send(String(repeating: "x", count: 1000))
        talk.session.close(now: at(1))
        _ = talk.actions()
        talk.session.arrived(500, now: at(5))
        talk.session.timeReached(at(6))
        #expect(talk.actions() == [] && talk.session.wakeUp == at(11))
        talk.session.timeReached(at(11))
        #expect(try talk.end() == DDPSocketEnd())
    }

    @Test func closingWithNothingToSendEndsAtOnce() throws {
        var talk = Conversation.open()
        talk.session.close(now: talk.now)
        #expect(try talk.end() == DDPSocketEnd())
        talk.session.close(now: talk.now)
        talk.session.failed(RealtimeError(.connectionLost, ""))
        #expect(talk.actions() == [])
    }
}
