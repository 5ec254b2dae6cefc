import Session
import Testing
import Wire

@testable import Engine

struct PushInterestsTests {
    private func push(_ pusher: PusherHarness) throws -> PushInterests {
        try pusher.connection.configure { (options) throws(RealtimeError) in
            try options.setPushURL(pusher.pushURL)
        }
        let push = pusher.connection.push
        try push.setHandlers { handlers in
            let add: (String) -> Void = { [unowned pusher] in pusher.lines.append($0) }
            handlers.registered = { _ in add("registered") }
            handlers.registrationFailed = { add("failed: \($0.message)") }
            handlers.done = { add("done \($0)") }
            handlers.failed = { add("failed \($0): \($1.message)") }
        }
        return push
    }

    @Test func callsWaitForTheRegistrationAndKeepTheirOrder() throws {
        let pusher = try PusherHarness()
        let push = try push(pusher)
        try push.call(.subscribe("a b"))
        try push.call(.unsubscribe("a b"))
        try push.call(.setSubscriptions(["x", "y"]))
        try pusher.settle()
        #expect(pusher.lines == [])
        try push.register(token: [0xAB, 0x01], platform: "apns")
        try pusher.run { pusher.lines.count == 4 }
        #expect(
            pusher.lines == [
                "registered", #"done subscribe("a b")"#, #"done unsubscribe("a b")"#,
                #"done setSubscriptions(["x", "y"])"#,
            ])
        let interests = try pusher.control("interests").objectValue
        #expect(interests?.members.first?.value == ["x", "y"])
        #expect(pusher.connection.state == .disconnected)
    }

    @Test func aRefusedRegistrationHasTheResponse() throws {
        let pusher = try PusherHarness()
        let push = try push(pusher)
        try pusher.control("push", ["status": 403, "body": "no"])
        var response: HTTPResponse?
        try push.setHandlers { $0.registrationFailed = { response = $0.response } }
        try push.register(token: [1], platform: "apns")
        try pusher.run { response != nil }
        #expect(response?.status == 403)
        #expect(response?.body == Array("no".utf8))
    }

    @Test func aCloseEndsIt() throws {
        let pusher = try PusherHarness()
        weak var gone: PushInterests?
        do {
            let push = try push(pusher)
            gone = push
            try pusher.control("push", ["hold": true])
            try push.register(token: [1], platform: "apns")
            try pusher.settle()
        }
        pusher.connection.close()
        #expect(gone?.isClosed == true)
        #expect(throws: RealtimeError.self) {
            try pusher.connection.push.register(token: [1], platform: "apns")
        }
    }
}
