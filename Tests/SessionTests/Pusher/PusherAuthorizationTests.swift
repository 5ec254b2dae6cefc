import Session
import Testing
import Wire

/// Requests for authorizations, and what follows their answers.
struct PusherAuthorizationTests {
    private static func answer(
        _ auth: String = "KEY:9", channelData: String? = nil, secret: SharedSecret? = nil
    ) -> PusherAuthorizationAnswer {
        PusherAuthorizationAnswer(auth: auth, channelData: channelData, sharedSecret: secret)
    }

    @Test(arguments: ["private-orders", "presence-lobby", "private-encrypted-ledger"])
    func `private, presence and encrypted channels need an authorization`(name: String) throws {
        let model = try PusherModel.connected()
        #expect(
            try model.subscribe(name).done == ["1 authorizing", "authorize \(name) for 1.1"])
        let secret = SharedSecret(SecretBytes(String(repeating: "k", count: 32)))
        #expect(
            model.authorize(channelData: #"{"user_id":"u"}"#, secret: secret) == [
                "1 sent", "send subscribe \(name) with KEY:1",
            ])
    }

    @Test func `each channel has a request of its own by default`() throws {
        let model = try PusherModel()
        for name in ["private-a", "private-b"] { _ = try model.subscribe(name) }
        #expect(
            try model.establish().filter { $0.hasPrefix("authorize") } == [
                "authorize private-a for 1.1", "authorize private-b for 1.1",
            ])
    }

    @Test func `a batch has the channels of one turn, up to the limit`() throws {
        let model = try PusherModel { $0.authBatchSize = 2 }
        for name in ["private-a", "public", "private-b", "presence-c"] {
            _ = try model.subscribe(name)
        }
        #expect(
            try model.establish().filter { $0.hasPrefix("authorize") } == [
                "authorize private-a,private-b for 1.1", "authorize presence-c for 1.1",
            ])
    }

    @Test func `a reconnect with a hundred private channels costs one request`() throws {
        let model = try PusherModel { $0.authBatchSize = 100 }
        for number in 0..<100 { _ = try model.subscribe("private-\(number)") }
        #expect(try model.establish().filter { $0.hasPrefix("authorize") }.count == 1)
        #expect(model.authorize().filter { $0.hasPrefix("send subscribe") }.count == 100)
    }

    @Test func `one channel of a batch fails alone`() throws {
        let model = try PusherModel { $0.authBatchSize = 10 }
        for name in ["private-a", "private-b", "private-c"] { _ = try model.subscribe(name) }
        _ = try model.establish()
        let results: [Result<PusherAuthorizationAnswer, RealtimeError>] = [
            .success(Self.answer()), .failure(RealtimeError(.auth, "no")),
        ]
        #expect(
            model.answer(.channels(results)) == [
                "1 sent", "send subscribe private-a with KEY:9", "2 failed",
                "event pusher:subscription_error on 2", "2 refused auth", "3 failed",
                "event pusher:subscription_error on 3", "3 refused auth",
            ])
    }

    @Test func `a channel of a batch that was unsubscribed is left out`() throws {
        let model = try PusherModel { $0.authBatchSize = 10 }
        for name in ["private-a", "private-b"] { _ = try model.subscribe(name) }
        _ = try model.establish()
        #expect(model.unsubscribe(1) == [])
        #expect(model.authorize() == ["2 sent", "send subscribe private-b with KEY:1"])
    }

    @Test func `a batch without channels left is cancelled`() throws {
        let model = try PusherModel { $0.authBatchSize = 10 }
        for name in ["private-a", "private-b"] { _ = try model.subscribe(name) }
        _ = try model.establish()
        #expect(model.unsubscribe(1) == [])
        #expect(model.unsubscribe(2) == ["cancel"])
    }

    @Test func `a refusal tells the response and its body, and changes no state`() throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("private-orders")
        #expect(
            model.refuse(.auth, status: 403, body: "denied") == [
                "1 failed", "event pusher:subscription_error on 1", "1 refused auth",
            ])
        #expect(model.failure?.status == 403)
        #expect(model.failure?.body == Array("denied".utf8))
        let data = try JSONValue(parsing: try #require(model.event).dataBytes)
        #expect(data["type"] == .string("AuthError"))
        #expect(data["status"] == .integer(403))
        #expect(data["body"] == .string("denied"))
        #expect(model.session.state == .connected)
    }

    @Test func `a late answer for another socket is ignored`() throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("private-orders")
        let old = try #require(model.request)
        #expect(
            model.end(after: .seconds(5)) == [
                "cancel", "1 idle", "connected → reconnecting in 0 s",
            ])
        _ = try model.pass()
        #expect(
            try model.establish("2.2").last == "authorize private-orders for 2.2")
        #expect(model.authorize("KEY:old", old) == [])
        #expect(
            model.authorize("KEY:new") == ["1 sent", "send subscribe private-orders with KEY:new"])
    }

    @Test func `an answer given twice counts once`() throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("private-orders")
        _ = model.authorize()
        #expect(model.authorize() == [])
        #expect(model.refuse() == [])
    }

    @Test func `a request that was never made is not cancelled`() throws {
        let model = try PusherModel()
        model.session.signIn(now: model.now)
        _ = model.connect()
        _ = model.received(PusherModel.established())
        #expect(
            model.end() == [
                "connecting → connected", "connected → reconnecting in 1 s",
            ])
    }

    // MARK: Retries

    @Test func `requests are not repeated by default`() throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("private-orders")
        #expect(model.refuse(.connect).last == "1 refused connect")
    }

    @Test func `requests that may pass are repeated after 1, 2 and 4 s`() throws {
        let model = try PusherModel.connected { $0.authRetries = 3 }
        _ = try model.subscribe("private-orders")
        #expect(model.refuse(.auth, status: 503) == [])
        #expect(model.wait == .seconds(1))
        #expect(try model.pass() == ["authorize private-orders for 1.1"])
        #expect(model.refuse(.timeout) == [])
        #expect(model.wait == .seconds(2))
        _ = try model.pass()
        #expect(model.refuse(.connect) == [])
        #expect(model.wait == .seconds(4))
        _ = try model.pass()
        #expect(
            model.refuse(.auth, status: 500) == [
                "1 failed", "event pusher:subscription_error on 1", "1 refused auth",
            ])
    }

    @Test(arguments: [400, 401, 403, 404, 429, 200])
    func `a refusal is never repeated`(status: Int) throws {
        let model = try PusherModel.connected { $0.authRetries = 3 }
        _ = try model.subscribe("private-orders")
        #expect(model.refuse(.auth, status: status).last == "1 refused auth")
    }

    @Test func `an authorizer that refuses is not asked again`() throws {
        let model = try PusherModel.connected { $0.authRetries = 3 }
        _ = try model.subscribe("private-orders")
        #expect(model.refuse(.auth).last == "1 refused auth")
    }

    @Test func `unsubscribe ends the repetition`() throws {
        let model = try PusherModel.connected { $0.authRetries = 3 }
        let (id, _) = try model.subscribe("private-orders")
        _ = model.refuse(.connect)
        #expect(model.unsubscribe(id) == [])
        #expect(model.pass(.seconds(10)) == [])
    }

    @Test func `repetitions of one time share their requests`() throws {
        let model = try PusherModel {
            $0.authRetries = 1
            $0.authBatchSize = 10
        }
        for name in ["private-a", "private-b"] { _ = try model.subscribe(name) }
        _ = try model.establish()
        #expect(model.refuse(.connect) == [])
        #expect(try model.pass() == ["authorize private-a,private-b for 1.1"])
    }

    // MARK: Values at subscribe

    @Test func `a value given at subscribe is used without a request, once`() throws {
        let model = try PusherModel.connected()
        #expect(
            try model.subscribe("private-orders", answer: Self.answer()).done == [
                "1 sent", "send subscribe private-orders with KEY:9",
            ])
        _ = model.end(after: .seconds(5))
        _ = try model.pass()
        #expect(try model.establish("2.2").last == "authorize private-orders for 2.2")
    }

    @Test func `a value given before there is a connection is used when there is one`() throws {
        let model = try PusherModel()
        _ = try model.subscribe("private-orders", answer: Self.answer())
        #expect(try model.establish().last == "send subscribe private-orders with KEY:9")
    }

    @Test func `a value given after a failure is used`() throws {
        let model = try PusherModel.connected()
        let (id, _) = try model.subscribe("private-orders")
        _ = model.refuse()
        #expect(
            try model.again(id, "private-orders", answer: Self.answer()).last
                == "send subscribe private-orders with KEY:9")
    }

    @Test func `a value for a presence channel must have channel data`() throws {
        let model = try PusherModel.connected()
        #expect(
            try model.subscribe("presence-lobby", answer: Self.answer()).done == [
                "1 failed", "event pusher:subscription_error on 1", "1 refused auth",
            ])
    }

    @Test func `a value for an encrypted channel without its secret is used, with a warning`()
        throws
    {
        let model = try PusherModel.connected()
        model.session.wantsLog = true
        let done = try model.subscribe("private-encrypted-ledger", answer: Self.answer()).done
        #expect(done.first?.contains("no shared secret") == true)
        #expect(done.last == "send subscribe private-encrypted-ledger with KEY:9")
    }

    @Test func `an authorizer's answer for an encrypted channel must have its secret`() throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("private-encrypted-ledger")
        #expect(
            model.authorize() == [
                "1 failed", "event pusher:subscription_error on 1", "1 refused auth",
            ])
    }

    @Test func `channel data is forwarded unchanged, whatever the kind`() throws {
        let data = #"{ "user_id" : "u" }"#
        let model = try PusherModel.connected()
        model.session.subscribe(
            1, try PusherChannelName("private-a"), answer: Self.answer(channelData: data),
            now: model.now)
        var sent: [UInt8] = []
        while let action = model.session.nextAction() {
            if case .command(.send(_, let bytes)) = action { sent = bytes }
        }
        #expect(try JSONValue(parsing: sent)["data"]?["channel_data"] == .string(data))
    }

    @Test func `no log line has an authorization or a secret`() throws {
        let model = try PusherModel.connected { $0.authRetries = 1 }
        model.session.wantsLog = true
        var log: [String] = []
        log += try model.subscribe(
            "private-encrypted-x", answer: Self.answer("KEY:s3cret")
        ).done
        log += try model.subscribe("private-a").done
        log += model.refuse(.connect)
        log += try model.pass()
        log += model.authorize("KEY:s3cret")
        log += model.succeed("nobody")
        log += model.end(after: .seconds(5))
        let lines = log.filter { $0.hasPrefix("log ") }
        #expect(lines.count >= 3)
        #expect(!lines.contains { $0.contains("s3cret") })
    }

    /// A function of the program that never answers.
    @Test func `an authorization by the program has a time limit`() throws {
        let model = try PusherModel.connected { $0.authTimeout = .seconds(10) }
        _ = try model.subscribe("private-a")
        let request = try #require(model.request)
        model.session.asksProgram(request.number, now: model.now)
        #expect(model.pass(.seconds(10)) == [])
        #expect(
            model.pass(.seconds(1)) == [
                "1 failed", "event pusher:subscription_error on 1", "1 refused timeout",
            ])
        #expect(model.failure?.error.message.hasSuffix("within 10 s (authTimeout)") == true)
        // An answer that comes too late is ignored.
        #expect(model.authorize() == [])
    }

    @Test func `an answer in time, and a request to the endpoint, end the program's time`() throws {
        let model = try PusherModel.connected { $0.authTimeout = .seconds(10) }
        _ = try model.subscribe("private-a")
        let first = try #require(model.request)
        model.session.asksProgram(first.number, now: model.now)
        _ = try model.subscribe("private-b")
        let second = try #require(model.request)
        model.session.asksProgram(second.number, now: model.now)
        #expect(model.authorize("KEY:1", first).count == 2)
        model.session.prepared(second.number, with: SentSecrets())
        #expect(model.pass(.seconds(20)) == [])
        #expect(model.authorize("KEY:1", second).count == 2)
    }
}
