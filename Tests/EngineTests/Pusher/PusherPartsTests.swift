import CShims
import Session
import Testing
import Wire

@testable import Engine

/// What a Pusher connection is made of.
struct PusherPartsTests {
    // MARK: Handlers

    private final class Channel {}

    private func call(
        _ bindings: PusherBindings<Channel>, _ event: String,
        _ gate: borrowing DeliveryGate
    ) {
        PusherEventView.of(PusherEvent(event, channel: nil, .none)) {
            bindings.handlers(of: $0.event).call($0, nil, gate)
        }
    }

    @Test func handlersAreCalledInTheOrderOfTheirNumbers() {
        let bindings = PusherBindings<Channel>()
        let gate = DeliveryGate()
        var called: [UInt64] = []
        for (id, event) in [(4, "a"), (1, nil), (3, nil), (2, "a"), (5, "b")] as [(UInt64, String?)]
        {
            #expect(bindings.add(id, event) { _, _, _ in called.append(id) })
        }
        call(bindings, "a", gate)
        #expect(called == [1, 2, 3, 4])
        #expect(bindings.remove(3) && !bindings.remove(3))
        bindings.removeAll(of: "a")
        called = []
        call(bindings, "a", gate)
        call(bindings, "b", gate)
        #expect(called == [1, 1, 5])
        bindings.removeAll(forGood: true)
        #expect(!bindings.add(6, nil) { _, _, _ in called.append(6) })
        called = []
        call(bindings, "b", gate)
        #expect(called == [])
    }

    @Test func aHandlerThatWasUnboundIsReleased() {
        let bindings = PusherBindings<Channel>()
        weak var held: Channel?
        do {
            let channel = Channel()
            held = channel
            _ = bindings.add(1, "a") { _, _, _ in _ = channel }
        }
        #expect(held != nil)
        bindings.remove(1)
        #expect(held == nil)
    }

    @Test func theEndOfAHandlerIsReportedOnce() {
        let bindings = PusherBindings<Channel>()
        var ended: [UInt64] = []
        for (id, event) in [(1, "a"), (2, "a"), (3, nil), (4, nil)] as [(UInt64, String?)] {
            let end = { [unowned bindings] in
                // Without the lock, so it may call us.
                #expect(!bindings.remove(id))
                ended.append(id)
            }
            #expect(bindings.add(id, event, ended: end) { _, _, _ in })
        }
        bindings.remove(3)
        #expect(ended == [3])
        bindings.removeAll(of: "a")
        #expect(ended == [3, 1, 2])
        bindings.removeAll(forGood: true)
        bindings.removeAll()
        #expect(ended == [3, 1, 2, 4])
    }

    // MARK: Events that the library makes

    @Test func anEventOfTheLibraryHasAMessage() {
        let event = PusherEvent(
            "pusher:member_added", channel: "presence-\"a", .text, Array(#"{"user_id":"1"}"#.utf8))
        var message = ""
        PusherEventView.of(event) { view in
            message = String(decoding: view.source, as: UTF8.self)
            #expect(view.property("data") == Array(#""{\"user_id\":\"1\"}""#.utf8))
            #expect(view.property("other") == nil)
        }
        let channel = #""channel":"presence-\"a""#
        let data = #""data":"{\"user_id\":\"1\"}""#
        #expect(message == #"{"event":"pusher:member_added",\#(channel),\#(data)}"#)
    }

    // MARK: The log

    private func redacted(_ text: String) -> String {
        text.withBytes { PusherRedaction.text(of: $0) }
    }

    @Test(
        arguments: [
            (#"{"event":"a","data":"b"}"#, #"{"event":"a","data":"b"}"#),
            (#"{"auth":"KEY:00ff"}"#, #"{"auth":"…"}"#),
            (#"{"auth" : "a\"b\\", "c":"d"}"#, #"{"auth" : "…", "c":"d"}"#),
            (#"{"data":"{\"auth\":\"K:1\",\"b\":2}"}"#, #"{"data":"{\"auth\":\"…\",\"b\":2}"}"#),
            (#"{"shared_secret":"AAAA="}"#, #"{"shared_secret":"…"}"#),
            (#"{"author":"Ann","auth":5}"#, #"{"author":"Ann","auth":5}"#),
            (#"{"auth":"cut"#, #"{"auth":"…"#),
            (#"{"auth"#, #"{"auth"#),
            (#"{"\u0061uth":"K:1"}"#, #"{"\u0061uth":"…"}"#),
            (#"{"\u0061\u0075t\u0068" :"K:1","b":1}"#, #"{"\u0061\u0075t\u0068" :"…","b":1}"#),
            (#"{"shared\u005Fsecret":"AAAA="}"#, #"{"shared\u005Fsecret":"…"}"#),
            (
                #"{"data":"{\"\\u0061uth\":\n\"K:1\",\"b\":2}"}"#,
                #"{"data":"{\"\\u0061uth\":\n\"…\",\"b\":2}"}"#
            ),
            (
                #"{"data":"{\u0022auth\u0022:\u0022K:1\u0022,\u0022b\u0022:2}"}"#,
                #"{"data":"{\u0022auth\u0022:\u0022…\u0022,\u0022b\u0022:2}"}"#
            ),
            (
                #"{"d":"{\u0022auth\u0022\u003a\"K:1\u0022,\"b\":\"c\"}"}"#,
                #"{"d":"{\u0022auth\u0022\u003a\"…\u0022,\"b\":\"c\"}"}"#
            ),
            (
                #"{"d":"{\u005c\"auth\\\":\u005c\"K:1\\\"}"}"#,
                #"{"d":"{\u005c\"auth\\\":\u005c\"…\\\"}"}"#
            ),
            (#"{"auth":"K:1\u005c"}"#, #"{"auth":"…"}"#),
            ("", ""),
        ])
    func secretsAreLeftOut(_ message: String, _ shown: String) {
        #expect(redacted(message) == shown)
    }

    @Test func whateverLooksLikeASignatureIsLeftOut() {
        let digits = String(repeating: "0a", count: 32)
        #expect(redacted("invalid: \(digits)!") == "invalid: …!")
        #expect(redacted("\(digits.dropLast())") == "\(digits.dropLast())")
    }
}
