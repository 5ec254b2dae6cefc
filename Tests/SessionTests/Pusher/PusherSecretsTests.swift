import Session
import Testing
import Wire

/// Servers quote what they were sent. It comes neither into errors, nor into events about failures,
/// nor into the log.
struct PusherSecretsTests {
    private let token = "S3cret.of-this.connection"

    private func subscribing() throws -> PusherModel {
        let model = try PusherModel.connected()
        model.session.wantsLog = true
        _ = try model.subscribe("private-a")
        _ = model.authorize("KEY:\(token)")
        return model
    }

    private func string(_ bytes: [UInt8]?) -> String {
        String(decoding: bytes ?? [], as: UTF8.self)
    }

    @Test func `a subscription error does not show the authorization`() throws {
        let model = try subscribing()
        _ = model.event(
            "pusher:subscription_error", "private-a",
            data: #"{"type":"AuthError","error":"bad KEY:\#(token)","status":401}"#)
        let failure = try #require(model.failure)
        #expect(failure.error.message.hasSuffix("bad KEY:… (status 401)"))
        #expect(string(failure.body).contains("bad KEY:…"))
        let event = try #require(model.event)
        #expect(!string(event.dataBytes).contains(token) && !string(event.message).contains(token))
    }

    @Test func `neither does an error, nor the end of the connection`() throws {
        let model = try subscribing()
        let done = model.receive(
            #"{"event":"pusher:error","data":{"code":4301,"message":"got \#(token)"}}"#)
        #expect(done.contains("error 4301"))
        let event = try #require(model.event)
        #expect(!string(event.source).contains(token))
        _ = model.end(4009, "expected \(token)")
        #expect(model.change?.closeReason == "expected …")
        #expect(model.change?.error?.message.contains(token) == false)
    }

    @Test func `an event of the application is left as it is`() throws {
        let model = try subscribing()
        #expect(model.event("new", "private-a", data: "\"\(token)\"") == ["deliver on 1"])
    }

    @Test func `a debug line does not show it`() throws {
        let model = try subscribing()
        #expect(
            model.receive(#"{"event":"pusher_internal:\#(token)"}"#).contains {
                $0.hasPrefix("log unknown") && !$0.contains(token)
            })
    }

    @Test func `what an endpoint quotes of its request is left out`() throws {
        let model = try PusherModel.connected {
            try $0.setAuthHeader("Authorization", "Bearer \(token)")
            try $0.setAuthParameter("p", "S3cret parameter")
        }
        _ = try model.subscribe("private-a")
        _ = model.refuse(status: 403, body: "refused Bearer \(token), p=S3cret%20parameter")
        let failure = try #require(model.failure)
        #expect(string(failure.body) == "refused Bearer …, p=…")
        #expect(string(failure.error.response?.body) == "refused Bearer …, p=…")
        let event = try #require(model.event)
        #expect(!string(event.dataBytes).contains("S3cret"))
    }

    @Test func `a sign-in error does not show the authorization`() throws {
        let model = try PusherModel.connected()
        _ = model.signIn()
        _ = model.answer(.user(PusherUserAnswer(auth: "KEY:\(token)", userData: #"{"id":"u"}"#)))
        _ = model.receive(
            #"{"event":"pusher:error","data":{"code":4200,"message":"bad \#(token)"}}"#)
        let failure = try #require(model.failure)
        #expect(!failure.error.message.contains(token) && !string(failure.body).contains(token))
    }

    /// No known server sends an event of this name, which is one of the library's own.
    @Test func `neither does a server's event of that name`() throws {
        let model = try subscribing()
        _ = model.receive(#"{"event":"pusher:signin_error","data":{"message":"bad \#(token)"}}"#)
        let event = try #require(model.event)
        #expect(!string(event.dataBytes).contains(token) && !string(event.message).contains(token))
    }
}
