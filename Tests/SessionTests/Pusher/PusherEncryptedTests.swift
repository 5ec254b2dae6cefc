import Session
import Testing
import Wire

/// Events of encrypted channels.
struct PusherEncryptedTests {
    private static let name = "private-encrypted-ledger"
    /// A payload that `right` opens.
    private static let sealed =
        #"{"nonce":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYX","ciphertext":"DhyZvi1J2HACvtrFpT+c+kw4"#
        + #"vAf12CcEtKEAhWVJiv7kl3qtF4ZyBhesP1r7jA=="}"#
    /// No key opens it: one character of it was changed.
    private static let damaged = sealed.replacing("DhyZvi1J", with: "DhyZvi1K")
    private static let text = #"{"amount":12,"note":"Grüße"}"#
    private static let right = key("Kac8DG5/eTTzqfIZZ9HXAmnm6v4eMLUPYDHQdMHwBl4=")
    private static let wrong = key("AAAADG5/eTTzqfIZZ9HXAmnm6v4eMLUPYDHQdMHwBl4=")

    /// Payloads that no key opens.
    private static let malformed = [
        "{}", #""hello""#, "null", "1", #"{"nonce":"AAEC","ciphertext":"AAAA"}"#,
        #"{"nonce":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"}"#,
        #"{"nonce":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYX","ciphertext":"AAAA"}"#,
        #"{"nonce":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYX","ciphertext":"!"}"#,
    ]

    private static func key(_ base64: String) -> SharedSecret? {
        Array(base64.utf8).withUnsafeBytes { SharedSecret(base64: $0) }
    }

    private func joined(_ key: SharedSecret?) throws -> PusherModel {
        let model = try PusherModel.connected()
        _ = try model.join(Self.name, secret: key)
        return model
    }

    private func send(_ model: PusherModel, _ event: String, data: String = sealed) -> [String] {
        model.event(event, Self.name, data: data)
    }

    @Test func `an event is decrypted`() throws {
        let model = try joined(Self.right)
        #expect(send(model, "a") == ["event a on 1"])
        #expect(model.event?.dataBytes == Array(Self.text.utf8))
        #expect(model.event?.dataKind == .text)
    }

    @Test(arguments: ["pusher:cache_miss", "pusher:other"])
    func `events of the protocol are not encrypted`(event: String) throws {
        let model = try joined(Self.right)
        for data in ["{}", Self.sealed] {
            #expect(send(model, event, data: data) == ["deliver on 1"])
        }
    }

    @Test(arguments: ["chat", "private-chat", "presence-chat", "private-encryptedchat"])
    func `other channels do not decrypt`(name: String) throws {
        let model = try PusherModel.connected()
        _ = try model.join(name, own: #"{"user_id":"u"}"#)
        #expect(model.event("a", name, data: Self.sealed) == ["deliver on 1"])
    }

    @Test(arguments: malformed)
    func `a malformed payload is reported, and asks for no key`(data: String) throws {
        let model = try joined(Self.right)
        #expect(send(model, "a", data: data) == ["1 cannot decrypt a"])
    }

    @Test func `an event that the key does not open asks for a new key once, and is delivered`()
        throws
    {
        let model = try joined(Self.wrong)
        #expect(send(model, "a") == ["authorize \(Self.name) for 1.1"])
        #expect(model.authorize(secret: Self.right) == ["event a on 1"])
        #expect(send(model, "b") == ["event b on 1"])
    }

    @Test func `a new key that does not help is the end of the event, but not of the next`() throws
    {
        let model = try joined(Self.wrong)
        _ = send(model, "a")
        #expect(model.authorize(secret: Self.wrong) == ["1 cannot decrypt a"])
        #expect(send(model, "b") == ["authorize \(Self.name) for 1.1"])
        #expect(model.authorize(secret: Self.right) == ["event b on 1"])
    }

    @Test func `an event that no key opens does not stop the next`() throws {
        let model = try joined(Self.wrong)
        _ = send(model, "a", data: Self.damaged)
        #expect(send(model, "b") == [])
        #expect(model.authorize(secret: Self.right) == ["1 cannot decrypt a", "event b on 1"])
    }

    @Test func `no new key: the event is reported, and the key stays`() throws {
        let model = try joined(Self.wrong)
        _ = send(model, "a")
        #expect(model.refuse(.auth, status: 403) == ["1 cannot decrypt a"])
        _ = send(model, "b")
        #expect(model.authorize(secret: nil) == ["1 cannot decrypt b"])
        #expect(model.session.channelState(1) == .subscribed)
    }

    @Test func `later events of the channel wait, and keep their order`() throws {
        let model = try joined(Self.wrong)
        _ = send(model, "a")
        #expect(send(model, "b") == [])
        #expect(send(model, "c", data: "{}") == [])
        #expect(send(model, "d") == [])
        #expect(
            model.authorize(secret: Self.right) == [
                "event a on 1", "event b on 1", "1 cannot decrypt c", "event d on 1",
            ])
    }

    @Test func `the next event that fails asks again`() throws {
        let model = try joined(Self.wrong)
        _ = send(model, "a")
        _ = send(model, "b")
        #expect(
            model.authorize(secret: Self.wrong) == [
                "1 cannot decrypt a", "authorize \(Self.name) for 1.1",
            ])
        #expect(model.authorize(secret: Self.right) == ["event b on 1"])
    }

    @Test func `other channels do not wait`() throws {
        let model = try joined(Self.wrong)
        _ = try model.join("chat")
        _ = send(model, "a")
        _ = try model.join("private-encrypted-other", secret: Self.right)
        #expect(model.event("new", "chat") == ["deliver on 2"])
        let other = model.event("new", "private-encrypted-other", data: Self.sealed)
        #expect(other == ["event new on 3"])
        #expect(send(model, "pusher:cache_miss", data: "{}") == ["deliver on 1"])
    }

    @Test func `a drop ends the wait: the events are reported, and the key is forgotten`() throws {
        let model = try joined(Self.wrong)
        _ = send(model, "a")
        _ = send(model, "b")
        #expect(
            model.end(after: .seconds(5)) == [
                "cancel", "1 cannot decrypt a", "1 cannot decrypt b", "1 idle",
                "connected → reconnecting in 0 s",
            ])
        #expect(model.authorize(secret: Self.right) == [])
    }

    @Test func `unsubscribe ends the wait`() throws {
        let model = try joined(Self.wrong)
        _ = send(model, "a")
        #expect(model.unsubscribe(1) == ["cancel", "send unsubscribe \(Self.name)"])
        #expect(model.authorize(secret: Self.right) == [])
    }

    @Test func `a value at subscribe without a secret asks for one at the first event`() throws {
        let model = try PusherModel.connected()
        let answer = PusherAuthorizationAnswer(auth: "KEY:9", channelData: nil, sharedSecret: nil)
        _ = try model.subscribe(Self.name, answer: answer)
        _ = model.succeed(Self.name)
        #expect(send(model, "a") == ["authorize \(Self.name) for 1.1"])
        #expect(model.authorize(secret: Self.right) == ["event a on 1"])
    }

    @Test(arguments: malformed)
    func `without a key, a malformed payload is reported, and asks for no key`(
        data: String
    ) throws {
        let model = try PusherModel.connected()
        let answer = PusherAuthorizationAnswer(auth: "KEY:1", channelData: nil, sharedSecret: nil)
        _ = try model.subscribe(Self.name, answer: answer)
        _ = model.succeed(Self.name)
        #expect(send(model, "a", data: data) == ["1 cannot decrypt a"])
        #expect(send(model, "b") == ["authorize \(Self.name) for 1.1"])
        #expect(send(model, "c", data: data) == [])
        #expect(model.authorize(secret: Self.right) == ["event b on 1", "1 cannot decrypt c"])
    }

    @Test func `the events that wait have a limit`() throws {
        let model = try joined(Self.wrong)
        let limit = PusherConfiguration.heldEventLimit
        for number in 0..<limit {
            #expect(send(model, "e\(number)").count == (number == 0 ? 1 : 0))
        }
        #expect(send(model, "more") == ["1 cannot decrypt more"])
        #expect(model.authorize(secret: Self.right).count == limit)
    }

    @Test func `the bytes that wait in all channels have a limit`() throws {
        let model = try PusherModel.connected()
        let names = (0..<20).map { "private-encrypted-\($0)" }
        for name in names { _ = try model.join(name, secret: Self.wrong) }
        for name in names { #expect(model.event("a", name, data: Self.sealed).count == 1) }
        let text = String(repeating: "x", count: 1 << 20)
        let large = #"{"nonce":"\#(text)"}"#
        let lines = names.flatMap { model.event("large", $0, data: large) }
        #expect(lines.count == 13)
        #expect(lines.allSatisfy { $0.hasSuffix("cannot decrypt large") })
    }

    @Test func `a server cannot cause requests for keys without end`() throws {
        let model = try joined(Self.wrong)
        for _ in 0..<1000 {
            #expect(send(model, "a").count == 1)
            #expect(model.authorize(secret: Self.wrong) == ["1 cannot decrypt a"])
        }
        #expect(send(model, "b") == ["1 cannot decrypt b"])
        _ = model.pass(.milliseconds(100))
        #expect(send(model, "c") == ["authorize \(Self.name) for 1.1"])
    }
}
