import Session
import Testing
import Wire

/// The states of a connection and their transitions.
struct PusherStateTests {
    @Test func `is disconnected at first, and has no deadline`() throws {
        let model = try PusherModel()
        #expect(model.session.state == .disconnected)
        #expect(model.wait == nil)
    }

    @Test func `has the numbers and names of PusherSwift`() {
        let states: [PusherState] = [
            .connecting, .connected, .disconnecting, .disconnected, .reconnecting,
        ]
        #expect(states.map { $0.rawValue } == [0, 1, 2, 3, 4])
        #expect(
            states.map { $0.name } == [
                "connecting", "connected", "disconnecting", "disconnected", "reconnecting",
            ])
    }

    @Test func `connects, and is connected only when the server confirms it`() throws {
        let model = try PusherModel()
        #expect(model.connect() == ["disconnected → connecting", "open"])
        #expect(model.open() == [])
        #expect(model.session.state == .connecting)
        #expect(model.receive(PusherModel.established("4711.90210")) == ["connecting → connected"])
        #expect(model.session.socketID == "4711.90210")
    }

    @Test func `the default URL is that of the first cluster, with TLS`() throws {
        let model = try PusherModel()
        _ = model.connect()
        let url = try #require(model.attempt?.url.requestURL)
        #expect(url.hasPrefix("https://ws.pusherapp.com:443/app/KEY?client="))
        #expect(url.hasSuffix("&protocol=7"))
        #expect(model.attempt?.subprotocol == nil)
    }

    @Test func `host, port, path and TLS come from the options`() throws {
        let model = try PusherModel {
            try $0.setHost("localhost")
            $0.port = 6001
            $0.path = "ws"
            $0.usesTLS = false
            $0.offersSubprotocol = true
        }
        _ = model.connect()
        let url = try #require(model.attempt?.url.requestURL)
        #expect(url.hasPrefix("http://localhost:6001/ws/app/KEY?"))
        #expect(model.attempt?.subprotocol == "pusher-channels-protocol-7")
    }

    @Test func `nothing is sent before the server confirms the connection`() throws {
        let model = try PusherModel()
        _ = model.connect()
        _ = model.open()
        #expect(try model.subscribe("chat").done == [])
        #expect(try model.subscribe("private-orders").done == [])
        #expect(model.signIn() == [])
        #expect(
            model.receive(PusherModel.established()) == [
                "connecting → connected", "1 sent", "send subscribe chat", "2 authorizing",
                "authorize user for 1.1", "authorize private-orders for 1.1",
            ])
    }

    @Test func `a second connect opens no second socket`() throws {
        let model = try PusherModel()
        _ = model.connect()
        #expect(model.connect() == [])
        _ = try model.establish()
        #expect(model.connect() == [])
    }

    @Test func `connect inside the callback of a lost connection works`() throws {
        let model = try PusherModel.connected()
        _ = model.end(nil, "", .connectionLost, after: .seconds(5))
        #expect(model.session.state == .reconnecting)
        #expect(model.connect() == ["reconnecting → connecting", "open"])
    }

    @Test func `disconnect closes with 1000 and waits for the answer`() throws {
        let model = try PusherModel.connected()
        #expect(model.disconnect() == ["connected → disconnecting", "close"])
        #expect(model.wait == .seconds(5))
        #expect(model.end(1000) == ["disconnecting → disconnected"])
        #expect(model.change?.error == nil)
        #expect(model.wait == nil)
        #expect(model.session.socketID == nil)
    }

    @Test func `a server that does not answer the close frame is dropped after 5 s`() throws {
        let model = try PusherModel.connected()
        _ = model.disconnect()
        #expect(try model.pass() == ["drop", "disconnecting → disconnected"])
    }

    @Test func `the 5 s begin anew while events before the close frame arrive`() throws {
        let model = try PusherModel.connected()
        model.session.sentBytes = SentBytes(queued: 1000, arrived: 100)
        _ = model.disconnect()
        model.session.sentBytes.arrived = 101
        #expect(model.pass(.seconds(5)) == [])
        #expect(model.session.state == .disconnecting && model.wait == .seconds(5))
        #expect(try model.pass() == ["drop", "disconnecting → disconnected"])
    }

    @Test func `disconnect while connecting drops the socket`() throws {
        let model = try PusherModel()
        _ = model.connect()
        #expect(model.disconnect() == ["drop", "connecting → disconnected"])
        #expect(model.wait == nil)
        #expect(model.open() == [])
        #expect(model.receive(PusherModel.established()) == [])
    }

    @Test func `disconnect while reconnecting ends the wait`() throws {
        let model = try PusherModel()
        _ = model.connect()
        _ = model.end(nil, "", .connect)
        #expect(model.disconnect() == ["reconnecting → disconnected"])
        #expect(model.wait == nil)
    }

    @Test func `disconnect without a connection does nothing`() throws {
        let model = try PusherModel()
        #expect(model.disconnect() == [])
        _ = try model.establish()
        _ = model.disconnect()
        #expect(model.disconnect() == [])
    }

    @Test func `disconnect wins over a pending authorization`() throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("private-orders")
        #expect(
            model.disconnect() == ["cancel", "1 idle", "connected → disconnecting", "close"])
        #expect(model.authorize() == [])
    }

    @Test func `connect while disconnecting drops the old socket first`() throws {
        let model = try PusherModel.connected()
        _ = model.disconnect()
        #expect(
            model.connect() == [
                "drop", "disconnecting → disconnected", "disconnected → connecting", "open",
            ])
    }

    @Test func `an attempt that the server never confirms times out`() throws {
        let model = try PusherModel()
        _ = model.connect()
        #expect(model.wait == .seconds(30))
        _ = model.open()
        #expect(try model.pass() == ["drop", "connecting → reconnecting in 0 s"])
        #expect(model.change?.error?.code == .timeout)
    }

    @Test func `the connect timeout can be switched off`() throws {
        let model = try PusherModel { $0.connectTimeout = .zero }
        _ = model.connect()
        #expect(model.wait == nil)
    }

    @Test func `reports of an older socket are ignored`() throws {
        let model = try PusherModel.connected()
        let old = model.socket
        _ = model.end(nil, "", .connectionLost, after: .seconds(5))
        _ = try model.pass()
        #expect(model.receive(PusherModel.established(), on: old) == [])
        model.session.ended(old, PusherSocketEnd(), now: model.now)
        #expect(model.done() == [])
        #expect(model.session.state == .connecting)
    }

    @Test func `a state change tells the close code and its reason`() throws {
        let model = try PusherModel.connected()
        _ = model.end(4100, "over capacity", after: .seconds(5))
        #expect(model.change?.closeCode == 4100)
        #expect(model.change?.closeReason == "over capacity")
        #expect(model.change?.attempt == 1)
    }

    @Test func `a handshake without a socket id is not a confirmation`() throws {
        let model = try PusherModel()
        _ = model.connect()
        _ = model.open()
        #expect(model.receive(#"{"event":"pusher:connection_established","data":"{}"}"#) == [])
        #expect(model.session.state == .connecting)
    }

    @Test func `without a network no attempt is made, until it returns`() throws {
        let model = try PusherModel.connected()
        model.session.networkChanged(isOnline: false, now: model.now, random: 0)
        #expect(model.done() == ["send ping"])
        #expect(
            model.end(nil, "", .connectionLost, after: .seconds(5))
                == ["connected → reconnecting"])
        #expect(model.wait == nil)
        model.session.networkChanged(isOnline: true, now: model.now, random: 0)
        #expect(try model.pass() == ["reconnecting → connecting", "open"])
    }

    @Test(arguments: [true, false])
    func `connect without a network waits for one, which is reported once`(
        isByProgram: Bool
    ) throws {
        let model = try PusherModel()
        func change(_ isReachable: Bool) {
            if isByProgram {
                model.session.hostReportsNetwork(isReachable: isReachable, now: model.now)
            } else {
                model.session.networkChanged(isOnline: isReachable, now: model.now, random: 0.5)
            }
        }
        change(false)
        #expect(model.connect() == ["disconnected → reconnecting"])
        #expect(model.change?.error?.code == .connect)
        let message = model.change?.error?.message
        #expect(message == "ws.pusherapp.com:443: no network reaches it")
        #expect(model.change?.retryIn == nil && model.change?.attempt == 0 && model.wait == nil)
        #expect(model.connect() == [])
        change(false)
        #expect(model.done() == [])
        change(true)
        if isByProgram {
            #expect(model.done() == ["reconnecting → connecting", "open"])
        } else {
            #expect(model.done() == [] && model.wait == .milliseconds(500))
            #expect(try model.pass() == ["reconnecting → connecting", "open"])
        }
    }

    @Test(arguments: [true, false])
    func `an attempt that is not repeated is made without a network`(isByOption: Bool) throws {
        let model = try PusherModel {
            if isByOption { $0.autoReconnect = false } else { $0.reconnectAttemptsMax = 0 }
        }
        model.session.networkChanged(isOnline: false, now: model.now, random: 0)
        #expect(model.connect() == ["disconnected → connecting", "open"])
        #expect(model.end(nil, "", .resolve) == ["connecting → disconnected"])
        #expect(model.change?.error?.code == .resolve)
    }

    @Test func `a network that goes during a delay is reported`() throws {
        let model = try PusherModel()
        _ = model.connect()
        for _ in 0..<2 {
            _ = model.end(nil, "", .connect)
            if model.wait == .zero { _ = try model.pass() }
        }
        #expect(model.wait == .seconds(1))
        model.session.networkChanged(isOnline: false, now: model.now, random: 0)
        #expect(model.done() == ["reconnecting → reconnecting"])
        #expect(model.change?.error?.code == .connect && model.change?.attempt == 2)
        #expect(model.wait == nil)
        model.session.networkChanged(isOnline: true, now: model.now, random: 0)
        #expect(model.done() == [])
        model.session.networkChanged(isOnline: false, now: model.now, random: 0)
        #expect(model.done() == ["reconnecting → reconnecting"])
        #expect(model.disconnect() == ["reconnecting → disconnected"])
        #expect(model.connect() == ["disconnected → reconnecting"])
    }

    @Test func `a network that goes during an attempt is reported by its failure`() throws {
        let model = try PusherModel()
        _ = model.connect()
        model.session.networkChanged(isOnline: false, now: model.now, random: 0)
        #expect(model.done() == [])
        #expect(model.end(nil, "", .connectionLost) == ["connecting → reconnecting"])
        #expect(model.wait == nil && model.session.reconnectAttempts == 0)
    }
}
