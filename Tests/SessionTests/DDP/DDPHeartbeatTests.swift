import Session
import Testing
import Wire

/// When a server is asked for a sign of life, and when its connection is given up.
struct DDPHeartbeatTests {
    @Test func silenceIsAnsweredByAPingAndThenEndsTheConnection() {
        let model = DDPModel.connected()
        model.pass(.milliseconds(17_499))
        #expect(model.done() == [])
        model.pass(.milliseconds(1))
        #expect(model.done() == ["> ping"])
        model.pass(.milliseconds(14_999))
        #expect(model.done() == [])
        model.pass(.milliseconds(1))
        #expect(model.done() == ["drop", "waiting"])
    }

    @Test(arguments: [#"{"msg":"pong"}"#, #"{"msg":"ready","subs":[]}"#])
    func everyMessageIsAnAnswer(message: String) {
        let model = DDPModel.connected()
        model.pass(.milliseconds(17_500))
        #expect(model.done() == ["> ping"])
        model.pass(.seconds(14))
        model.server(message)
        model.pass(.seconds(2))
        #expect(model.done() == [])
        #expect(model.session.status == .connected)
    }

    /// A message over a slow link takes longer than an answer may take.
    @Test func partsOfAMessageAreAnswers() {
        let model = DDPModel.connected()
        model.pass(.milliseconds(17_500))
        #expect(model.done() == ["> ping"])
        for _ in 0..<6 {
            model.pass(.seconds(14))
            model.session.heard(on: model.socket)
        }
        #expect(model.session.status == .connected)
        model.pass(.seconds(14))
        model.session.heard(on: model.socket + 1)
        model.pass(.seconds(30))
        #expect(model.done().contains("drop"))
    }

    @Test func anOldServerGetsNoPings() {
        let model = DDPModel { $0.versions = ["pre1"] }
        model.connect()
        model.pass(.seconds(600))
        #expect(model.done() == [])
    }

    /// A megabyte at 20 kB/s: the ping comes after it.
    @Test func aPingBehindOtherBytesIsAwaitedWhileTheseArrive() {
        let model = DDPModel.connected()
        model.session.sentBytes = SentBytes(queued: 1_000_000, arrived: 100_000)
        model.pass(.milliseconds(17_500))
        #expect(model.done() == ["> ping"])
        for arrived in [400_000, 700_000, 1_000_000] as [UInt64] {
            model.session.sentBytes = SentBytes(queued: 1_000_014, arrived: arrived)
            model.pass(.seconds(15))
            #expect(model.done() == [])
        }
        // The ping has arrived, too, perhaps just before.
        model.session.sentBytes = SentBytes(queued: 1_000_014, arrived: 1_000_014)
        model.pass(.seconds(15))
        #expect(model.done() == ["drop", "waiting"])
    }

    @Test func aPingBehindBytesThatDoNotArriveIsNotExcused() {
        let model = DDPModel.connected()
        model.session.sentBytes = SentBytes(queued: 1_000_000, arrived: 100_000)
        model.pass(.milliseconds(17_500))
        #expect(model.done() == ["> ping"])
        // More is queued, and nothing arrives.
        model.session.sentBytes = SentBytes(queued: 2_000_000, arrived: 100_000)
        model.pass(.seconds(15))
        #expect(model.done() == ["drop", "waiting"])
    }

    /// The kernel of a server that hangs still acknowledges what comes after the ping.
    @Test func bytesAfterThePingProveNothing() {
        let model = DDPModel.connected()
        model.session.sentBytes = SentBytes(queued: 1000, arrived: 1000)
        model.pass(.milliseconds(17_500))
        #expect(model.done() == ["> ping"])
        model.session.sentBytes = SentBytes(queued: 2000, arrived: 2000)
        model.pass(.seconds(15))
        #expect(model.done() == ["drop", "waiting"])
    }

    /// What the socket has not been given yet will be before the ping as well.
    @Test func callsThatWaitForTheSocketAreBeforeThePing() {
        let model = DDPModel.connected()
        model.pass(.milliseconds(17_499))
        _ = model.done()
        model.call("upload", [.string(String(repeating: "x", count: 5000))])
        model.pass(.milliseconds(1))
        _ = model.done()
        model.session.sentBytes = SentBytes(queued: 5100, arrived: 1000)
        model.pass(.seconds(15))
        #expect(model.done() == [])
        model.pass(.seconds(15))
        #expect(model.done() == ["drop", "waiting"])
    }

    /// A program that cannot keep up receives nothing for a while, not even pongs. The server hears
    /// pings all the time.
    @Test func silenceDoesNotCountDuringAPause() {
        let model = DDPModel.connected()
        model.pass(.milliseconds(17_500))
        #expect(model.done() == ["> ping"])
        model.session.setPaused(true)
        model.pass(.milliseconds(17_499))
        #expect(model.done() == [])
        for _ in 0..<9 {
            model.pass(.milliseconds(1))
            #expect(model.done() == ["> ping"])
            model.pass(.milliseconds(17_499))
            #expect(model.done() == [])
        }
        model.session.setPaused(false)
        model.pass(.milliseconds(32_498))
        #expect(model.session.status == .connected)
        model.pass(.milliseconds(3))
        #expect(model.done() == ["> ping", "drop", "waiting"])
    }

    @Test func aLostConnectionHasNoHeartbeat() {
        let model = DDPModel.connected { $0.mayReconnect = false }
        model.lose()
        #expect(model.done() == ["failed"])
        let due = model.session.wakeUp
        #expect(due == nil)
    }

    @Test func theProgramAsksForAPing() {
        let model = DDPModel.connected()
        model.session.retryNow(model.now)
        model.pass(.zero)
        #expect(model.done() == ["> ping"])
        model.pass(.seconds(15))
        #expect(model.done() == ["drop", "waiting"])
        // The attempt that waits is made at once.
        model.session.retryNow(model.now)
        #expect(model.done() == ["connecting", "dial"])
    }
}
