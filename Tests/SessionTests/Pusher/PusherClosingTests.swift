import Session
import Testing
import Wire

/// What follows the end of a connection.
struct PusherClosingTests {
    @Test(arguments: [4000, 4001, 4003, 4004, 4005, 4006, 4007, 4008, 4009, 4050, 4099])
    func `a code of a refusal ends the connection, and is reported`(code: UInt16) throws {
        let model = try PusherModel.connected()
        #expect(
            model.end(code, "no", after: .seconds(60)) == [
                "error \(code)", "connected → disconnected",
            ])
        #expect(model.change?.closeCode == Int(code))
        #expect(model.change?.error != nil)
        #expect(model.wait == nil)
    }

    /// soketi and Reverb send the text in a `pusher:error`, and a close frame with only the code.
    @Test func `the text of an error is kept when the close frame has only its code`() throws {
        let model = try PusherModel.connected()
        _ = model.receive(
            #"{"event":"pusher:error","data":{"code":4001,"message":"App key x not found"}}"#)
        _ = model.end(4001, "")
        let message = try #require(model.change?.error?.message)
        #expect(message.hasSuffix("closed the connection with code 4001: App key x not found"))
        let other = try PusherModel.connected()
        _ = other.error(4301)
        _ = other.end(4001, "")
        #expect(other.change?.error?.message.hasSuffix("with code 4001") == true)
    }

    @Test(arguments: [4100, 4150, 4199])
    func `over capacity: the next attempt waits at least a second`(code: UInt16) throws {
        let model = try PusherModel.connected()
        #expect(
            model.end(code, after: .seconds(60)) == ["connected → reconnecting in 1 s"])
    }

    @Test(arguments: [4200, 4201, 4202, 4299])
    func `a server that asks for a new connection gets it at once`(code: UInt16) throws {
        let model = try PusherModel.connected()
        #expect(
            model.end(code, after: .seconds(60)) == ["connected → reconnecting in 0 s"])
    }

    @Test(arguments: [
        nil, 1000, 1001, 1002, 1003, 1004, 1006, 1011, 4300, 4301, 4999,
    ])
    func `any other end backs off`(code: UInt16?) throws {
        let model = try PusherModel()
        _ = model.connect()
        #expect(model.end(code) == ["connecting → reconnecting in 0 s"])
        _ = try model.pass()
        #expect(model.end(code) == ["connecting → reconnecting in 1 s"])
        _ = try model.pass()
        #expect(model.end(code) == ["connecting → reconnecting in 4 s"])
    }

    @Test(arguments: [RealtimeError.Code.connect, .tls, .resolve, .handshake, .timeout, .proxy])
    func `an attempt that fails backs off`(code: RealtimeError.Code) throws {
        let model = try PusherModel()
        _ = model.connect()
        #expect(model.end(nil, "", code) == ["connecting → reconnecting in 0 s"])
        #expect(model.change?.error?.code == code)
    }

    @Test func `the delays are squares up to the cap, without an end`() throws {
        let model = try PusherModel()
        _ = model.connect()
        var waits: [Duration] = []
        for _ in 0..<14 {
            _ = model.end(nil, "", .connect)
            waits.append(try #require(model.wait))
            _ = try model.pass()
        }
        let seconds = [0, 1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 120, 120, 120]
        #expect(waits == seconds.map { .seconds($0) })
    }

    @Test func `the cap can be removed at run time`() throws {
        let model = try PusherModel()
        _ = model.connect()
        model.session.configureRetries(max: nil, gap: nil)
        for _ in 0..<13 {
            _ = model.end(nil, "", .connect)
            if model.session.reconnectAttempts < 13 { _ = try model.pass() }
        }
        #expect(model.wait == .seconds(144))
    }

    @Test func `a confirmed connection starts the delays again`() throws {
        let model = try PusherModel()
        _ = model.connect()
        for _ in 0..<5 {
            _ = model.end(nil, "", .connect)
            _ = try model.pass()
        }
        #expect(model.session.reconnectAttempts == 5)
        _ = try model.establish()
        #expect(model.session.reconnectAttempts == 0)
        #expect(model.end(after: .seconds(2)) == ["connected → reconnecting in 0 s"])
    }

    @Test func `over capacity during attempts waits for the longer delay`() throws {
        let model = try PusherModel()
        _ = model.connect()
        var waits: [Duration] = []
        for _ in 0..<4 {
            _ = model.end(4100)
            waits.append(try #require(model.wait))
            _ = try model.pass()
        }
        #expect(waits == [.seconds(1), .seconds(1), .seconds(4), .seconds(9)])
    }

    @Test func `a connection that is dropped within a second is renewed after one`() throws {
        for code in [nil, 1000, 4100, 4200] as [UInt16?] {
            let model = try PusherModel.connected()
            #expect(
                model.end(code, after: .milliseconds(900)) == ["connected → reconnecting in 1 s"])
        }
    }

    @Test func `two renewals within 5 s of opening back off`() throws {
        let model = try PusherModel()
        _ = model.connect()
        _ = model.open()
        #expect(model.end(4200, after: .seconds(4)) == ["connecting → reconnecting in 0 s"])
        _ = try model.pass()
        _ = model.open()
        #expect(model.end(4200, after: .seconds(4)) == ["connecting → reconnecting in 1 s"])
        _ = try model.pass()
        _ = model.open()
        #expect(model.end(4200, after: .seconds(6)) == ["connecting → reconnecting in 0 s"])
    }

    @Test func `reconnect limits end the attempts`() throws {
        let model = try PusherModel { $0.reconnectAttemptsMax = 2 }
        _ = model.connect()
        _ = model.end(nil, "", .connect)
        _ = try model.pass()
        _ = model.end(nil, "", .connect)
        _ = try model.pass()
        #expect(model.end(nil, "", .connect) == ["connecting → disconnected"])
        #expect(model.change?.error?.code == .reconnectsExhausted)
        #expect(model.connect() == ["disconnected → connecting", "open"])
        #expect(model.end(nil, "", .connect) == ["connecting → reconnecting in 0 s"])
    }

    @Test(arguments: [nil, 1006, 4000, 4100, 4200, 4300] as [UInt16?])
    func `without auto_reconnect no attempt follows, whatever the code`(code: UInt16?) throws {
        let model = try PusherModel.connected {
            $0.autoReconnect = false
            $0.usesTLS = false
            $0.upgradesOn4000 = true
        }
        _ = model.end(code, after: .seconds(60))
        #expect(model.session.state == .disconnected)
        #expect(model.wait == nil)
    }

    @Test func `a limit of no attempts at all is like no auto_reconnect`() throws {
        let model = try PusherModel.connected { $0.reconnectAttemptsMax = 0 }
        #expect(model.end(after: .seconds(60)) == ["connected → disconnected"])
    }

    @Test func `4000 without TLS is tried once with TLS, if the option says so`() throws {
        let model = try PusherModel {
            $0.usesTLS = false
            $0.upgradesOn4000 = true
        }
        _ = model.connect()
        #expect(model.attempt?.url.isSecure == false)
        #expect(model.end(4000) == ["connecting → reconnecting in 0 s"])
        #expect(try model.pass() == ["reconnecting → connecting", "open"])
        #expect(model.attempt?.url.isSecure == true)
        #expect(model.end(4000) == ["error 4000", "connecting → disconnected"])
    }

    @Test func `4000 without the option is a refusal`() throws {
        let model = try PusherModel { $0.usesTLS = false }
        _ = model.connect()
        #expect(model.end(4000) == ["error 4000", "connecting → disconnected"])
    }

    @Test(arguments: [false, true])
    func `4000 that is not followed by an attempt with TLS is a refusal`(
        isExhausted: Bool
    ) throws {
        let model = try PusherModel {
            $0.usesTLS = false
            $0.upgradesOn4000 = true
            $0.autoReconnect = isExhausted
            $0.reconnectAttemptsMax = 1
        }
        _ = model.connect()
        if isExhausted {
            _ = model.end()
            _ = try model.pass()
        }
        #expect(model.end(4000, "TLS only") == ["error 4000", "connecting → disconnected"])
        #expect(model.change?.closeCode == 4000)
        #expect(model.change?.error?.code == (isExhausted ? .reconnectsExhausted : .connectionLost))
    }

    @Test func `4000 whose error was reported is not reported again`() throws {
        let model = try PusherModel {
            $0.usesTLS = false
            $0.upgradesOn4000 = true
            $0.autoReconnect = false
        }
        _ = model.connect()
        _ = model.open()
        #expect(
            model.error(4000) == [
                "event pusher:error", "error 4000", "drop", "connecting → disconnected",
            ])
    }

    @Test(arguments: [
        (4001, "disconnected"), (4009, "disconnected"), (4100, "reconnecting in 1 s"),
    ])
    func `an error before the confirmation stands for the close code`(
        code: Int, next: String
    ) throws {
        let model = try PusherModel()
        _ = model.connect()
        _ = model.open()
        #expect(
            model.error(code) == [
                "event pusher:error", "error \(code)", "drop", "connecting → \(next)",
            ])
        #expect(model.change?.closeCode == code)
        #expect(model.change?.closeReason == "words")
    }

    @Test func `an error with another code before the confirmation does not end the attempt`()
        throws
    {
        let model = try PusherModel()
        _ = model.connect()
        _ = model.open()
        #expect(model.error(nil) == ["event pusher:error", "error none"])
        #expect(model.error(4301) == ["event pusher:error", "error 4301"])
        #expect(model.session.state == .connecting)
    }

    @Test func `an error alone never closes a confirmed connection`() throws {
        let model = try PusherModel.connected()
        for code in [4001, 4009, 4100, 4200, 4201, 4301] {
            #expect(model.error(code) == ["event pusher:error", "error \(code)"])
        }
        #expect(model.session.state == .connected)
    }

    @Test func `an end without a code soon after an error has the code of the error`() throws {
        let model = try PusherModel.connected()
        _ = model.pass(.seconds(60))
        _ = model.error(4009)
        #expect(model.end(1000, after: .milliseconds(999)) == ["connected → disconnected"])
        #expect(model.change?.closeCode == 4009)
    }

    @Test func `signatures that the server quotes are left out of errors`() throws {
        let signature = String(repeating: "0123456789abcdef", count: 4)
        let model = try PusherModel.connected()
        _ = model.end(4009, "expected KEY:\(signature)")
        let change = try #require(model.change)
        #expect(change.closeReason == "expected KEY:…")
        #expect(change.error?.message.contains(signature) == false)
        let message = PusherErrorMessage(code: 4009, message: "expected KEY:\(signature)")
        #expect(message.message == "expected KEY:…")
    }

    @Test func `an end that an error explains has the words of the error`() throws {
        let model = try PusherModel.connected()
        _ = model.error(4009)
        _ = model.end(nil, "", .connectionLost)
        let change = try #require(model.change)
        #expect(change.closeCode == 4009 && change.closeReason == "words")
        let words = "closed the connection with code 4009: words"
        #expect(change.error?.message.hasSuffix(words) == true)
    }

    @Test func `a close code of Pusher and the error agree, although the socket failed`() throws {
        let model = try PusherModel.connected()
        _ = model.end(4201, "no pong", .connectionLost)
        let change = try #require(model.change)
        #expect(change.closeCode == 4201 && change.closeReason == "no pong")
        let words = "closed the connection with code 4201: no pong"
        #expect(change.error?.message.hasSuffix(words) == true)
    }

    @Test func `an end long after an error has its own code`() throws {
        let model = try PusherModel.connected()
        _ = model.pass(.seconds(60))
        _ = model.error(4009)
        #expect(
            model.end(1000, after: .milliseconds(1001)) == ["connected → reconnecting in 0 s"])
    }

    @Test func `a fatal close after its error is reported once`() throws {
        let model = try PusherModel.connected()
        _ = model.error(4009)
        #expect(model.end(4009) == ["connected → disconnected"])
    }

    @Test func `a fatal close long after an error with the same code is reported`() throws {
        let model = try PusherModel.connected()
        _ = model.error(4009)
        #expect(
            model.end(4009, after: .seconds(60)) == ["error 4009", "connected → disconnected"])
    }

    @Test func `exhaustion and delays do not count attempts that need a network`() throws {
        let model = try PusherModel { $0.reconnectAttemptsMax = 1 }
        for _ in 0..<3 {
            _ = model.connect()
            _ = model.pass(.seconds(1))
            model.session.networkChanged(isOnline: false, now: model.now, random: 0)
            #expect(model.end(nil, "", .resolve) == ["connecting → reconnecting"])
            #expect(model.connect() == [])
            model.session.networkChanged(isOnline: true, now: model.now, random: 0)
            #expect(try model.pass() == ["reconnecting → connecting", "open"])
        }
        #expect(model.session.reconnectAttempts == 0)
    }
}
