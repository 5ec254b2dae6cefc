import Session
import Testing
import Wire

/// When the server is asked for a sign of life, and when the connection counts as lost.
struct PusherKeepAliveTests {
    @Test(arguments: [
        ("120", nil, 120_000), ("30", nil, 30_000), ("0.5", nil, 500), ("null", nil, 60_000),
        ("120", 20, 20_000), ("30", 40, 30_000), ("null", 90, 90_000), ("0.001", nil, 100),
    ])
    func `the timeout is the shorter one of the server's and the option`(
        server: String, own: Int?, milliseconds: Int
    ) throws {
        let model = try PusherModel { $0.activityTimeout = own.map { .seconds($0) } ?? .zero }
        _ = try model.establish(timeout: server)
        #expect(model.wait == .milliseconds(milliseconds))
    }

    @Test
    func `after silence the server gets a ping, and the connection is lost without an answer`()
        throws
    {
        let model = try PusherModel.connected()
        #expect(try model.pass() == ["send ping"])
        #expect(model.wait == .seconds(30))
        #expect(try model.pass() == ["drop", "connected → reconnecting in 0 s"])
        #expect(model.change?.error?.code == .timeout)
        #expect(model.session.socketID == nil)
    }

    @Test func `anything from the server restarts the wait`() throws {
        let model = try PusherModel.connected()
        _ = model.pass(.seconds(100))
        _ = model.event("new-price", "unknown")
        #expect(model.pass(.seconds(119)) == [])
        model.session.activity(model.socket, now: model.now)
        #expect(model.pass(.seconds(119)) == [])
        #expect(model.pass(.seconds(1)) == ["send ping"])
    }

    @Test(arguments: ["a pong", "an event", "a frame"])
    func `anything from the server answers a ping`(what: String) throws {
        let model = try PusherModel.connected()
        _ = try model.pass()
        _ = model.pass(.seconds(29))
        switch what {
        case "a pong": _ = model.receive(#"{"event":"pusher:pong","data":"{}"}"#)
        case "an event": _ = model.event("new-price", "unknown")
        default: model.session.activity(model.socket, now: model.now)
        }
        #expect(model.wait == .seconds(120))
        #expect(model.pass(.seconds(119)) == [])
        #expect(model.pass(.seconds(1)) == ["send ping"])
    }

    @Test func `a ping behind other bytes is awaited while these arrive`() throws {
        let model = try PusherModel.connected()
        model.session.sentBytes = SentBytes(queued: 1_000_000, arrived: 100_000)
        #expect(try model.pass() == ["send ping"])
        for arrived in [500_000, 1_000_000] as [UInt64] {
            model.session.sentBytes = SentBytes(queued: 1_000_030, arrived: arrived)
            #expect(try model.pass() == [])
            #expect(model.wait == .seconds(30))
        }
        model.session.sentBytes = SentBytes(queued: 1_000_030, arrived: 1_000_030)
        #expect(try model.pass() == ["drop", "connected → reconnecting in 0 s"])
    }

    @Test(arguments: [
        (SentBytes(queued: 1_000_000, arrived: 100), SentBytes(queued: 2_000_000, arrived: 100)),
        (SentBytes(queued: 1000, arrived: 1000), SentBytes(queued: 2000, arrived: 2000)),
    ])
    func `bytes that do not arrive, or come after the ping, prove nothing`(
        before: SentBytes, after: SentBytes
    ) throws {
        let model = try PusherModel.connected()
        model.session.sentBytes = before
        #expect(try model.pass() == ["send ping"])
        model.session.sentBytes = after
        #expect(try model.pass() == ["drop", "connected → reconnecting in 0 s"])
    }

    @Test func `an option sends ping frames instead`() throws {
        let model = try PusherModel.connected { $0.usesFramePings = true }
        #expect(try model.pass() == ["ping frame"])
    }

    @Test func `without a pong timeout the pings go on`() throws {
        let model = try PusherModel.connected { $0.pongTimeout = .zero }
        #expect(try model.pass() == ["send ping"])
        #expect(model.wait == .seconds(120))
        #expect(try model.pass() == ["send ping"])
    }

    @Test func `the server's ping gets a pong`() throws {
        let model = try PusherModel.connected()
        #expect(model.receive(#"{"event":"pusher:ping","data":"{}"}"#) == ["send pong"])
    }

    @Test func `the application reports that the network is gone: a ping follows at once`() throws {
        let model = try PusherModel.connected()
        model.session.hostReportsNetwork(isReachable: false, now: model.now)
        #expect(model.done() == ["send ping"])
        #expect(model.wait == .seconds(30))
    }

    @Test func `the application reports a network while connected: a ping follows at once`() throws
    {
        let model = try PusherModel.connected()
        model.session.hostReportsNetwork(isReachable: true, now: model.now)
        #expect(model.done() == ["send ping"])
        model.session.hostReportsNetwork(isReachable: true, now: model.now)
        #expect(model.done() == [])
    }

    @Test func `the application reports a network while reconnecting: an attempt follows at once`()
        throws
    {
        let model = try PusherModel()
        _ = model.connect()
        _ = model.end(nil, "", .connect)
        _ = try model.pass()
        _ = model.end(nil, "", .connect)
        #expect(model.wait == .seconds(1))
        model.session.hostReportsNetwork(isReachable: true, now: model.now)
        #expect(model.done() == ["reconnecting → connecting", "open"])
    }

    @Test func `the application reports that the network is gone: no attempt follows`() throws {
        let model = try PusherModel()
        _ = model.connect()
        _ = model.end(nil, "", .connect)
        model.session.hostReportsNetwork(isReachable: false, now: model.now)
        #expect(model.done() == ["reconnecting → reconnecting"] && model.wait == nil)
        // It has said so before.
        model.session.networkChanged(isOnline: true, now: model.now, random: 0)
        #expect(model.done() == [] && model.wait == nil)
        model.session.hostReportsNetwork(isReachable: true, now: model.now)
        #expect(model.done() == ["reconnecting → connecting", "open"])
    }

    @Test func `silence during a pause does not count`() throws {
        let model = try PusherModel.connected()
        _ = try model.pass()
        model.session.setPaused(true, now: model.now)
        #expect(model.wait == nil)
        #expect(model.pass(.seconds(1000)) == [])
        model.session.setPaused(false, now: model.now)
        #expect(model.wait == .seconds(120))
    }

    @Test func `a connection that opens during a pause is not lost`() throws {
        let model = try PusherModel()
        model.session.setPaused(true, now: model.now)
        _ = try model.establish()
        #expect(model.wait == nil)
    }

    @Test func `after the end nothing is due`() throws {
        let model = try PusherModel.connected()
        _ = try model.pass()
        _ = model.disconnect()
        _ = model.end(1000)
        #expect(model.wait == nil)
    }
}
