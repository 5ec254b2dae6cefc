import Session
import Testing
import Wire

/// Some servers say why they end a connection only in a `pusher:error` before.
struct PusherErrorTextTests {
    @Test(arguments: [
        #"{"event":"pusher:error","data":{"message":"disabled here"}}"#,
        #"{"event":"pusher:error","data":"disabled here"}"#,
    ])
    func `an error without a code explains the close code that follows`(message: String) throws {
        let model = try PusherModel()
        _ = model.connect()
        _ = model.open()
        #expect(model.receive(message) == ["event pusher:error", "error none"])
        // It was reported already.
        #expect(model.end(4003) == ["connecting → disconnected"])
        #expect(model.change?.closeCode == 4003 && model.change?.closeReason == "disabled here")
        #expect(model.change?.error?.message.hasSuffix("code 4003: disabled here") == true)
    }

    @Test func `on a confirmed connection the close code is reported with the text`() throws {
        let model = try PusherModel.connected()
        _ = model.error(nil)
        #expect(model.end(4003) == ["error 4003", "connected → disconnected"])
        #expect(model.change?.closeReason == "words")
    }

    @Test func `an error that may answer a subscription explains no end`() throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("chat")
        _ = model.error(nil)
        _ = model.end(4003)
        #expect(model.change?.closeReason == "")
    }

    @Test func `a reason of the close frame comes first`() throws {
        let model = try PusherModel()
        _ = model.connect()
        _ = model.open()
        _ = model.error(nil)
        _ = model.end(4003, "the reason")
        #expect(model.change?.closeReason == "the reason")
    }

    @Test(arguments: [(1 << 16, 1), (2 << 20, 0)])
    func `a long error is cut`(length: Int, events: Int) throws {
        let model = try PusherModel.connected()
        let text = String(repeating: "x", count: length + 1)
        let lines = model.receive(#"{"event":"pusher:error","data":{"message":"\#(text)"}}"#)
        #expect(lines.count == events + 1)
        #expect(model.end(4003).count == 2)
        #expect(model.change?.closeReason.utf8.count == (64 << 10) + 3)
    }
}
