import Session
import Testing
import Wire

struct DDPConnectingTests {
    @Test func aServerWithOurVersionConnects() {
        let model = DDPModel()
        model.session.connect(now: model.now)
        #expect(model.done() == ["connecting", "dial"])
        model.open()
        #expect(model.done() == ["> connect 1"])
        model.confirm("S")
        #expect(model.done() == ["connected"])
        #expect(model.session.version == "1")
    }

    @Test func anotherVersionThatWeSupportIsTriedAtOnce() {
        let model = DDPModel()
        model.session.connect(now: model.now)
        model.open()
        _ = model.done()
        model.open()
        _ = model.done()
        model.server(#"{"msg":"failed","version":"pre2"}"#)
        #expect(model.done() == ["drop", "dial"])
        model.open()
        #expect(model.done() == ["> connect pre2"])
        model.confirm("S")
        #expect(model.session.version == "pre2")
        // The next connection begins with it.
        #expect(model.reopen().contains("> connect pre2 S 1"))
    }

    @Test func anUnknownVersionEndsTheClient() {
        let model = DDPModel()
        model.session.connect(now: model.now)
        _ = model.done()
        model.open()
        _ = model.done()
        model.server(#"{"msg":"failed","version":"9"}"#)
        #expect(model.done() == ["drop", "failed"])
        let due = model.session.wakeUp
        #expect(due == nil)
        model.session.connect(now: model.now)
        #expect(model.done() == [])
    }

    @Test func errorsNameTheServer() {
        let model = DDPModel {
            $0.server = "example.org:443"
            $0.backoff = BackoffConfiguration(initial: .seconds(60), maximum: .seconds(60))
        }
        model.session.connect(now: model.now)
        model.pass(.seconds(10))
        #expect(model.errors() == ["example.org:443 did not answer within 10 s (connectTimeout)"])
        model.session.connect(now: model.now)
        _ = model.done()
        model.open()
        model.pass(.seconds(10))
        let silent = "opened the connection, but did not answer as a Meteor server within 10 s"
        #expect(model.errors() == ["example.org:443 \(silent) (connectTimeout)"])
        model.connect()
        model.pass(.seconds(40))
        let lost = "example.org:443 did not answer a ping within 15 s (heartbeatTimeout)"
        #expect(model.errors() == [lost])
        model.connect()
        model.end(DDPSocketEnd(closeCode: 1008, reason: "Go away"))
        #expect(model.errors() == ["example.org:443 closed the connection with code 1008: Go away"])
        model.connect()
        model.end(DDPSocketEnd())
        #expect(model.errors() == ["example.org:443 ended the connection"])
        model.session.connect(now: model.now)
        _ = model.done()
        model.open()
        model.server(#"{"msg":"failed","version":"9"}"#)
        #expect(model.session.failureReason.contains(": example.org:443 wants 9, and we support 1"))
    }

    @Test func aServerWithoutAMessageFirstIsIgnored() {
        let model = DDPModel()
        model.session.connect(now: model.now)
        _ = model.done()
        model.open()
        _ = model.done()
        model.server(#"{"server_id":"0"}"#, "junk", "[]")
        #expect(model.done() == [])
        model.confirm("S")
        #expect(model.done() == ["connected"])
    }

    @Test(arguments: [false, true])
    func aLostConnectionIsOpenedAgain(isConfirmed: Bool) {
        let model = DDPModel()
        model.session.connect(now: model.now)
        _ = model.done()
        model.open()
        if isConfirmed { model.confirm("S") }
        _ = model.done()
        model.lose()
        #expect(model.done() == ["waiting"])
        #expect(model.session.retryCount == 1)
        model.pass(.milliseconds(9))
        #expect(model.done() == [])
        model.pass(.milliseconds(1))
        #expect(model.done() == ["connecting", "dial"])
    }

    @Test func connectingByHandKeepsTheCountOfFailures() {
        let model = DDPModel()
        model.session.connect(now: model.now)
        for _ in 0..<3 {
            model.pass(.seconds(5.5))
            _ = model.done()
            model.lose()
        }
        #expect(model.session.retryCount == 3)
        model.session.connect(now: model.now)
        model.session.connect(now: model.now)
        #expect(model.session.retryCount == 3 && model.session.status == .connecting)
        _ = model.done()
        model.lose()
        #expect(model.session.retryCount == 4 && model.session.retryDue != nil)
        model.session.disconnect(now: model.now)
        #expect(model.session.retryDue == nil)
        model.session.connect(now: model.now)
        #expect(model.session.retryCount == 0)
    }

    @Test func aFailedClientKeepsItsReason() {
        let model = DDPModel { $0.mayReconnect = false }
        #expect(model.session.failureReason == "")
        model.session.connect(now: model.now)
        _ = model.done()
        model.lose()
        #expect(model.session.status == .failed && !model.session.failureReason.isEmpty)
    }

    @Test func versionsAreOfferedInTheOrderOfTheOptions() throws {
        var configuration = DDPConfiguration()
        try configuration.addVersion("pre1")
        try configuration.addVersion("1")
        #expect(throws: RealtimeError.self) { try configuration.addVersion("1") }
        #expect(throws: RealtimeError.self) { try configuration.addVersion("pre3") }
        #expect(configuration.versions == ["pre1", "1"])
        let versions = configuration.versions
        let model = DDPModel { $0.versions = versions }
        model.session.connect(now: model.now)
        _ = model.done()
        model.open()
        #expect(model.done() == ["> connect pre1"])
    }

    @Test func anAttemptWithoutAnAnswerEnds() {
        let model = DDPModel()
        model.session.connect(now: model.now)
        _ = model.done()
        model.open()
        _ = model.done()
        model.pass(.seconds(10))
        #expect(model.done() == ["drop", "waiting"])
    }

    @Test func delaysGrowUntilTheServerConfirms() {
        let model = DDPModel()
        model.session.connect(now: model.now)
        var delays: [Double] = []
        for _ in 0..<10 {
            _ = model.done()
            model.open()
            model.lose()
            let due = model.session.retryDue ?? model.now
            delays.append((due - model.now) / .seconds(1))
            model.pass(due - model.now)
        }
        #expect(delays.prefix(2) == [0.01, 0.01])
        for (delay, mean) in zip(
            delays.dropFirst(2), [4.84, 10.648, 23.426, 51.536, 113.38, 249.436, 300, 300])
        {
            #expect(delay >= mean * 0.7499 && delay <= mean * 1.2501)
        }
        _ = model.done()
        model.open()
        model.confirm("S")
        #expect(model.session.retryCount == 0)
    }

    /// A server that confirms each connection and ends it soon is not asked all the time.
    @Test(arguments: [(0.999, 4.84), (1, 0.01)])
    func briefConnectionsAreFailures(_ seconds: Double, _ third: Double) {
        let model = DDPModel()
        model.session.connect(now: model.now)
        var delay = 0.0
        for round in 0..<3 {
            _ = model.done()
            model.open()
            model.confirm("S\(round)")
            #expect(model.session.retryCount == 0)
            model.pass(.seconds(seconds))
            model.lose()
            let due = model.session.retryDue ?? model.now
            delay = (due - model.now) / .seconds(1)
            model.pass(due - model.now)
        }
        #expect(delay >= third * 0.7499 && delay <= third * 1.2501)
    }

    /// A connection that the user replaces ends a row of failures, if it lasted.
    @Test func aReplacedConnectionThatLastedCounts() {
        let model = DDPModel()
        model.session.connect(now: model.now)
        for _ in 0..<3 {
            _ = model.done()
            model.lose()
            model.pass((model.session.retryDue ?? model.now) - model.now)
        }
        _ = model.done()
        model.open()
        model.confirm("S")
        model.pass(.seconds(2))
        model.session.reconnect(now: model.now)
        _ = model.done()
        model.lose()
        #expect(model.session.retryCount == 1)
    }

    @Test func withoutANetworkNothingIsTriedUntilItIsBack() {
        let model = DDPModel.connected()
        model.session.networkChanged(isReachable: false, now: model.now)
        #expect(model.done() == [])
        model.lose()
        #expect(model.done() == ["offline"])
        model.pass(.seconds(3600))
        #expect(model.done() == [])
        model.session.networkChanged(isReachable: true, now: model.now)
        #expect(model.done() == ["connecting", "dial"])
    }

    @Test(arguments: [true, false])
    func connectWaitsForTheNetwork(isByProgram: Bool) {
        let model = DDPModel()
        func change(_ isReachable: Bool) {
            if isByProgram {
                model.session.hostReportsNetwork(isReachable: isReachable, now: model.now)
            } else {
                model.session.networkChanged(isReachable: isReachable, now: model.now)
            }
        }
        change(false)
        model.session.connect(now: model.now)
        #expect(model.errors() == ["the server: no network reaches it"])
        model.session.connect(now: model.now)
        model.session.reconnect(now: model.now)
        change(false)
        model.pass(.seconds(3600))
        #expect(model.done() == [] && model.session.status == .offline)
        #expect(model.session.isConnectionWanted)
        change(true)
        #expect(model.done() == ["connecting", "dial"])
    }

    /// The driver tells whether there is a network only after the call.
    @Test func anAttemptThatHasNotBegunIsTakenBack() {
        let model = DDPModel()
        model.session.connect(now: model.now)
        model.session.networkChanged(isReachable: false, now: model.now)
        #expect(model.done() == ["offline"])
        model.session.networkChanged(isReachable: true, now: model.now)
        #expect(model.done() == ["connecting", "dial"])
        // This one has begun.
        model.session.networkChanged(isReachable: false, now: model.now)
        #expect(model.done() == [] && model.session.status == .connecting)
        model.lose()
        #expect(model.done() == ["offline"])
    }

    @Test func eachWaitForANetworkIsReported() {
        let model = DDPModel()
        model.session.networkChanged(isReachable: false, now: model.now)
        for _ in 0..<2 {
            model.session.connect(now: model.now)
            #expect(model.done() == ["offline"])
            model.session.disconnect(now: model.now)
            #expect(model.done() == [])
        }
        model.session.enterBackground(now: model.now)
        model.session.connect(now: model.now)
        #expect(model.done() == [])
        model.session.enterForeground(now: model.now)
        #expect(model.done() == ["offline"])
    }

    @Test func aReconnectWithoutANetworkIsReportedOnce() {
        let model = DDPModel.connected()
        model.session.networkChanged(isReachable: false, now: model.now)
        model.session.reconnect(now: model.now)
        #expect(model.done() == ["drop", "offline"])
    }

    @Test func anAttemptThatIsNotRepeatedNeedsNoNetwork() {
        let model = DDPModel { $0.mayReconnect = false }
        model.session.networkChanged(isReachable: false, now: model.now)
        model.session.connect(now: model.now)
        #expect(model.done() == ["connecting", "dial"])
        model.lose()
        #expect(model.done() == ["failed"])
    }

    @Test func aClientThatWaitsConnectsWhenTheNetworkReturns() {
        let model = DDPModel.connected()
        for _ in 0..<4 {
            model.lose()
            model.session.connect(now: model.now)
            _ = model.done()
        }
        model.lose()
        #expect(model.done() == ["waiting"])
        model.session.networkChanged(isReachable: false, now: model.now)
        #expect(model.errors() == ["the server: no network reaches it"])
        model.session.networkChanged(isReachable: true, now: model.now)
        #expect(model.done() == ["connecting", "dial"])
    }

    /// The program knows better than what was known before, even if it only says it again.
    @Test func anAttemptThatWaitsIsMadeWhenTheProgramReportsANetwork() {
        let model = DDPModel.connected()
        for _ in 0..<4 {
            model.lose()
            model.session.connect(now: model.now)
            _ = model.done()
        }
        model.lose()
        #expect(model.done() == ["waiting"])
        model.session.networkChanged(isReachable: true, now: model.now)
        #expect(model.done() == [])
        model.session.hostReportsNetwork(isReachable: true, now: model.now)
        #expect(model.done() == ["connecting", "dial"])
        // It disturbs neither an attempt nor a connection.
        model.session.hostReportsNetwork(isReachable: true, now: model.now)
        model.open()
        model.confirm("T")
        _ = model.done()
        model.session.hostReportsNetwork(isReachable: true, now: model.now)
        #expect(model.done() == [])
    }

    @Test func theProgramReportsThatThereIsNoNetwork() {
        let model = DDPModel.connected()
        model.session.hostReportsNetwork(isReachable: false, now: model.now)
        model.lose()
        #expect(model.done() == ["offline"])
        model.pass(.seconds(3600))
        model.session.enterBackground(now: model.now)
        model.session.hostReportsNetwork(isReachable: true, now: model.now)
        #expect(model.done() == [])
        model.session.enterForeground(now: model.now)
        #expect(model.done() == ["connecting", "dial"])
    }

    @Test func nothingIsTriedInTheBackground() {
        let model = DDPModel.connected()
        model.session.enterBackground(now: model.now)
        model.lose()
        model.pass(.seconds(3600))
        #expect(model.done() == ["offline"])
        model.session.enterForeground(now: model.now)
        #expect(model.done() == ["connecting", "dial"])
    }

    @Test(arguments: [true, false])
    func aConnectionMadeInTheBackgroundEnds(hasEnded: Bool) {
        let model = DDPModel.connected { $0.backgroundGrace = .seconds(5) }
        if !hasEnded { model.session.disconnect(now: model.now) }
        model.session.enterBackground(now: model.now)
        if hasEnded { model.pass(.seconds(6)) }
        _ = model.done()
        model.session.connect(now: model.now)
        _ = model.done()
        model.open()
        model.confirm("T")
        _ = model.done()
        model.pass(.milliseconds(4999))
        #expect(model.done() == [])
        model.pass(.milliseconds(1))
        #expect(model.done() == ["> disconnect", "close", "offline"])
    }

    /// The server has the request for a session, and may keep the session.
    @Test func aDisconnectBeforeTheConfirmationIsSent() {
        let model = DDPModel.connected()
        _ = model.reopen()
        model.session.disconnect(now: model.now)
        #expect(model.done() == ["> disconnect", "close", "offline"])
    }

    @Test func aDisconnectLasts() {
        let model = DDPModel.connected()
        model.session.disconnect(now: model.now)
        #expect(model.done() == ["> disconnect", "close", "offline"])
        model.session.networkChanged(isReachable: false, now: model.now)
        model.session.networkChanged(isReachable: true, now: model.now)
        model.pass(.seconds(3600))
        #expect(model.done() == [])
        model.session.connect(now: model.now)
        #expect(model.done() == ["connecting", "dial"])
    }

    @Test func pingsAreAnsweredWithTheirID() {
        let model = DDPModel.connected()
        model.server(#"{"msg":"ping","id":"p"}"#, #"{"msg":"ping"}"#)
        #expect(model.done() == ["> pong p", "> pong"])
    }

    @Test func errorsOfTheServerAreReported() {
        let model = DDPModel.connected()
        model.server(#"{"msg":"error","reason":"Bad request","offendingMessage":{"msg":"x"}}"#)
        #expect(model.done() == ["refused Bad request"])
    }

    @Test func aMessageThatIsTooLargeEndsTheConnection() {
        let model = DDPModel.connected()
        let error = RealtimeError(.tooLarge, "JSON with more than 9 values and names")
        model.session.received(.tooLarge(error), bytes: 100, on: model.socket, now: model.now)
        let lines = model.done()
        #expect(lines.first == "drop" && lines.count == 2, "\(lines)")
        #expect(model.session.status == .waiting)
        model.pass(.seconds(10))
        #expect(model.session.status == .connecting)
    }
}
