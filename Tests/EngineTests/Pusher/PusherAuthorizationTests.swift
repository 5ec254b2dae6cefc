import Glibc
import Session
import Synchronization
import Testing
import Wire

@testable import Engine

struct PusherAuthorizationTests {
    private func withEndpoint(_ pusher: PusherHarness) throws -> PusherHarness {
        try pusher.connection.configure { (options) throws(RealtimeError) in
            try options.setAuthEndpoint(pusher.endpoint())
            try options.setUserAuthEndpoint(pusher.endpoint("pusher/user-auth"))
        }
        return pusher
    }

    private func requests(_ pusher: PusherHarness) throws -> [JSONValue] {
        try pusher.control("log", ["what": "auth"]).arrayValue ?? []
    }

    @Test func anEndpointAuthorizesEachChannel() throws {
        let pusher = try withEndpoint(PusherHarness())
        try pusher.connection.configure { (options) throws(RealtimeError) in
            options.authParameters = [("user_id", "u-17"), ("token", "a b")]
            options.authHeaders.append(HeaderField(name: "X-Token", value: "t"))
        }
        for name in ["private-a@b", "presence-lobby", "private-encrypted-c"] {
            _ = try pusher.connection.subscribe(name)
        }
        try pusher.connection.connect()
        try pusher.run { pusher.lines.filter { $0.hasPrefix("subscribed") }.count == 3 }
        let requests = try requests(pusher)
        #expect(requests.count == 3)
        #expect(requests.allSatisfy { $0["form"]?["token"]?.stringValue == "a b" })
        let lobby = try #require(pusher.connection.channel(named: "presence-lobby"))
        #expect(lobby.members.table.members.map { $0.id } == ["u-17"])
        #expect(lobby.members.myID == "u-17")
        _ = try pusher.connection.bind("secret") { [unowned pusher] view, _, _ in
            pusher.lines.append(view.text)
        }
        try pusher.publish("private-encrypted-c", "secret", ["n": 1])
        try pusher.run(until: #"{"n":1}"#)
    }

    @Test func oneRequestAuthorizesABatch() throws {
        for wraps in [false, true] {
            let pusher = try withEndpoint(PusherHarness())
            try pusher.control("wrap_batches", ["wrap": .bool(wraps)])
            try pusher.control("auth", ["mode": "deny", "channel": "private-7"])
            try pusher.connection.configure { $0.authBatchSize = 100 }
            for index in 0..<100 { _ = try pusher.connection.subscribe("private-\(index)") }
            try pusher.connection.connect()
            try pusher.run {
                pusher.lines.filter { $0.hasPrefix("subscribed") }.count == 99
                    && pusher.lines.contains { $0.hasPrefix("failed private-7: ") }
            }
            #expect(try requests(pusher).count == 1)
        }
    }

    @Test func aRefusalHasTheResponse() throws {
        let pusher = try withEndpoint(PusherHarness())
        try pusher.control("auth", ["mode": "deny", "body": "not you"])
        var failure: PusherSubscriptionFailure?
        try pusher.connection.setHandlers { $0.subscriptionFailed = { failure = $1 } }
        let channel = try pusher.connection.subscribe("private-a")
        try pusher.connection.connect()
        try pusher.run { failure != nil }
        #expect(failure?.status == 403)
        #expect(failure?.body == Array("not you".utf8))
        #expect(channel.state == .failed)
        #expect(pusher.connection.state == .connected)
        // Another subscribe tries again.
        #expect(try pusher.connection.subscribe("private-a") === channel)
        try pusher.run(until: "subscribed private-a")
    }

    @Test func aRefusalShowsNoSecrets() throws {
        let pusher = try withEndpoint(PusherHarness())
        let body = #"{"why":"closed","auth":"key:5ec2e7","shared_secret":"c2VjcmV0"}"#
        try pusher.control("auth", ["mode": "deny", "body": .string(body)])
        var failure: PusherSubscriptionFailure?
        try pusher.connection.setHandlers { $0.subscriptionFailed = { failure = $1 } }
        _ = try pusher.connection.subscribe("private-a")
        try pusher.connection.connect()
        try pusher.run { failure != nil }
        let shown = String(decoding: try #require(failure?.body), as: UTF8.self)
        #expect(shown.contains("closed"))
        #expect(!shown.contains("5ec2e7"))
        #expect(!shown.contains("c2VjcmV0"))
    }

    @Test(arguments: ["bad_json", "no_auth", "drop"])
    func anAnswerThatCannotBeUsedIsAFailure(_ mode: String) throws {
        let pusher = try withEndpoint(PusherHarness())
        try pusher.control("auth", ["mode": .string(mode), "times": .null])
        _ = try pusher.connection.subscribe("private-a")
        try pusher.connection.connect()
        try pusher.run { pusher.lines.contains { $0.hasPrefix("failed private-a: ") } }
    }

    @Test func aSlowEndpointIsATimeout() throws {
        let pusher = try withEndpoint(PusherHarness())
        try pusher.connection.configure { $0.authTimeout = .milliseconds(50) }
        try pusher.control("auth", ["mode": "hang"])
        _ = try pusher.connection.subscribe("private-a")
        try pusher.connection.connect()
        try pusher.run { pusher.lines.contains { $0.hasPrefix("failed private-a: ") } }
    }

    @Test func anUnsubscribeCancelsTheRequest() throws {
        let pusher = try withEndpoint(PusherHarness())
        try pusher.control("auth", ["mode": "hang"])
        let channel = try pusher.connection.subscribe("private-a")
        try pusher.connect()
        try pusher.run { channel.state == .authorizing }
        try pusher.control("wait_held")
        #expect(pusher.connection.authorizations.count == 1)
        try channel.unsubscribe()
        try pusher.settle()
        #expect(pusher.connection.authorizations.isEmpty)
        #expect(pusher.connection.channel(channel.number) == nil)
    }

    @Test func aHandlerMayChangeTheRequest() throws {
        let pusher = try PusherHarness()
        let endpoint = pusher.endpoint()
        try pusher.connection.setHandlers { handlers in
            handlers.prepareAuthorization = { request, builder in
                guard request.channels[0].text != "private-no" else { return false }
                try? builder.setTarget("POST", endpoint)
                try? builder.setHeader("X-Token", "fresh")
                return true
            }
        }
        _ = try pusher.connection.subscribe("private-a")
        _ = try pusher.connection.subscribe("private-no")
        try pusher.connection.connect()
        try pusher.run {
            pusher.lines.contains("subscribed private-a")
                && pusher.lines.contains(
                    "failed private-no: the request for authorization could not be built")
        }
        #expect(try requests(pusher).count == 1)
    }

    @Test func withoutAMethodASubscriptionFails() throws {
        let pusher = try PusherHarness()
        _ = try pusher.connection.subscribe("private-a")
        try pusher.connection.connect()
        try pusher.run { pusher.lines.contains { $0.hasPrefix("failed private-a: ") } }
    }

    @Test func theSecretSignsEveryKindOfChannel() throws {
        let pusher = try PusherHarness()
        try pusher.connection.configure { (options) throws(RealtimeError) in
            options.setSecret(SecretBytes(pusher.secret))
            let key = pusher.masterKey.withUnsafeBytes { SecretBytes($0) }
            try options.setMasterKey(key)
        }
        try pusher.connection.setHandlers { handlers in
            handlers.userData = {
                .success(PusherMember(id: "u-17", info: Array(#"{"name":"Zoë"}"#.utf8)))
            }
        }
        for name in ["private-a", "presence-lobby", "private-encrypted-c"] {
            _ = try pusher.connection.subscribe(name)
        }
        try pusher.connection.signIn()
        try pusher.connection.connect()
        try pusher.run { pusher.lines.filter { $0.hasPrefix("subscribed") }.count == 3 }
        try pusher.run(until: "signed in u-17")
        #expect(pusher.connection.userID == "u-17")
        let lobby = try #require(pusher.connection.channel(named: "presence-lobby"))
        #expect(lobby.members.table["u-17"]?.info == Array(#"{"name":"Zoë"}"#.utf8))
        _ = try pusher.connection.bind("secret") { [unowned pusher] view, _, _ in
            pusher.lines.append(view.text)
        }
        try pusher.publish("private-encrypted-c", "secret", ["n": 1])
        try pusher.run(until: #"{"n":1}"#)
        _ = try pusher.connection.bindUser("mail") { [unowned pusher] view, _, _ in
            pusher.lines.append("user \(view.text)")
        }
        try pusher.publish("#server-to-user-u-17", "mail", ["n": 2])
        try pusher.run(until: #"user {"n":2}"#)
    }

    @Test(arguments: ["", "u-1"])
    func aUserThatCannotBeNamedIsAFailure(_ id: String) throws {
        let pusher = try PusherHarness()
        try pusher.connection.configure { (options) throws(RealtimeError) in
            options.setSecret(SecretBytes(pusher.secret))
        }
        try pusher.connection.setHandlers { handlers in
            handlers.userData = {
                id.isEmpty
                    ? .success(PusherMember(id: "", info: nil))
                    : .failure(RealtimeError(.auth, "nobody is at home"))
            }
        }
        _ = try pusher.connection.subscribe("presence-lobby")
        try pusher.connection.connect()
        let reason = id.isEmpty ? "the user's id is empty" : "nobody is at home"
        try pusher.run { pusher.lines.contains { $0.contains(reason) } }
        #expect(pusher.connection.state == .connected)
    }

    // MARK: The caller's function

    private func answer(
        _ request: PusherAuthorizationRequest, _ pusher: PusherHarness
    ) throws -> PusherAuthorizationAnswer {
        PusherAuthorizationAnswer(
            auth: try PusherSignature.channel(
                request.channels[0].text, channelData: nil, socketID: request.socketID,
                key: pusher.connection.options.read { $0.pointee.key },
                secret: SecretBytes(pusher.secret)),
            channelData: nil, sharedSecret: nil)
    }

    @Test func aFunctionMayAnswerLaterAndOnAnotherThread() throws {
        let pusher = try PusherHarness()
        var asked: PusherAuthorization?
        try pusher.connection.setHandlers { $0.authorize = { asked = $0 } }
        _ = try pusher.connection.subscribe("private-a")
        try pusher.connection.connect()
        try pusher.run { asked != nil }
        let authorization = try #require(asked)
        let answer = try answer(authorization.request, pusher)
        let answered = Atomic<Int>(0)
        let thread = Thread {
            for _ in 0..<2 where authorization.answer(answer) {
                answered.add(1, ordering: .relaxed)
            }
        }
        try pusher.run(until: "subscribed private-a")
        thread.join()
        #expect(answered.load(ordering: .relaxed) == 1)
    }

    @Test func anAnswerForAnEarlierConnectionIsIgnored() throws {
        let pusher = try PusherHarness()
        var asked: [PusherAuthorization] = []
        try pusher.connection.setHandlers { $0.authorize = { asked.append($0) } }
        _ = try pusher.connection.subscribe("private-a")
        try pusher.connection.connect()
        try pusher.run { asked.count == 1 }
        try pusher.control("end")
        try pusher.run { asked.count == 2 }
        asked[0].fail(RealtimeError(.auth, "too late"))
        try pusher.settle()
        #expect(asked[1].answer(try answer(asked[1].request, pusher)))
        try pusher.run(until: "subscribed private-a")
        #expect(!pusher.lines.contains { $0.contains("too late") })
    }

    /// The function names the user, later and on another thread, and the secret signs.
    @Test(arguments: [true, false]) func aFunctionMayLetTheSecretSign(hasSecret: Bool) throws {
        let pusher = try PusherHarness()
        if hasSecret {
            try pusher.connection.configure { $0.setSecret(SecretBytes(pusher.secret)) }
        }
        var asked: [PusherAuthorization] = []
        try pusher.connection.setHandlers { $0.authorize = { asked.append($0) } }
        _ = try pusher.connection.subscribe("presence-a")
        _ = try pusher.connection.subscribe("private-a")
        try pusher.connection.connect()
        try pusher.run { asked.count == 2 }
        #expect(asked.map(\.needsMember) == [true, false])
        let requests = asked
        let signed = Atomic<Int>(0)
        let thread = Thread {
            for request in requests + requests
            where request.sign(as: PusherMember(id: "u-1", info: nil)) {
                signed.add(1, ordering: .relaxed)
            }
        }
        thread.join()
        #expect(signed.load(ordering: .relaxed) == 2)
        guard hasSecret else {
            let reason =
                "the authorization cannot be signed, because the connection has no secret: set"
                + " one, or answer with the signature"
            return try pusher.run(until: "failed presence-a: \(reason)")
        }
        try pusher.run {
            pusher.lines.contains("subscribed presence-a")
                && pusher.lines.contains("subscribed private-a")
        }
        let lobby = try #require(pusher.connection.channel(named: "presence-a"))
        #expect(lobby.members.myID == "u-1")
    }

    @Test func droppingTheRequestIsAFailure() throws {
        let pusher = try PusherHarness()
        try pusher.connection.setHandlers { $0.authorize = { _ in } }
        _ = try pusher.connection.subscribe("private-a")
        try pusher.connection.connect()
        try pusher.run(until: "failed private-a: the authorization was not answered")
    }

    @Test func theChannelsOfABatchAreAnsweredOneByOne() throws {
        let pusher = try PusherHarness()
        var asked: PusherAuthorization?
        try pusher.connection.configure { $0.authBatchSize = 10 }
        try pusher.connection.setHandlers { $0.authorize = { asked = $0 } }
        for name in ["private-a", "private-K"] { _ = try pusher.connection.subscribe(name) }
        try pusher.connection.connect()
        try pusher.run { asked != nil }
        let authorization = try #require(asked)
        #expect(authorization.request.channels.map { $0.text } == ["private-a", "private-K"])
        let answer = try answer(authorization.request, pusher)
        #expect(try authorization.answer(.success(answer), for: "private-a"))
        #expect(try !authorization.answer(.success(answer), for: "private-a"))
        // Swift considers the Kelvin sign equal to the letter.
        for other in ["private-c", "private-\u{212A}"] {
            #expect(throws: RealtimeError.self) {
                try authorization.answer(.success(answer), for: other)
            }
        }
        try pusher.settle()
        #expect(!pusher.lines.contains("subscribed private-a"))
        #expect(authorization.fail(RealtimeError(.auth, "not this one")))
        try pusher.run(until: "subscribed private-a")
        #expect(pusher.lines.contains("failed private-K: not this one"))
    }
}

/// A thread that can be joined.
private final class Thread: @unchecked Sendable {
    private var thread = pthread_t()
    private let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) {
        self.body = body
        pthread_create(
            &thread, nil,
            { argument in
                if let argument {
                    Unmanaged<Thread>.fromOpaque(argument).takeRetainedValue().body()
                }
                return nil
            }, Unmanaged.passRetained(self).toOpaque())
    }

    func join() { pthread_join(thread, nil) }
}
