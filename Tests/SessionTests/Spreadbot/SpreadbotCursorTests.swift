import Session
import Testing
import Wire

/// B7, B8 and B12: one cursor for all legs, duplicates, and the return to the WebSocket.
@Suite struct SpreadbotCursorTests {
    /// The connection is lost and established again.
    private func reattach(_ bot: SpreadbotModel) throws {
        _ = bot.end(after: .seconds(20))
        _ = try bot.pass()
        _ = bot.open()
    }

    @Test func everyLegStartsAfterTheLastMessage() throws {
        let bot = try SpreadbotModel()
        try bot.connect()
        for id in ["1", "2"] { #expect(bot.receive(id)) }
        #expect(bot.session.lastEventID == "2")
        #expect(bot.end(close: 1002).last == "attach sse from 2")
        #expect(bot.open() == ["transport sse", "opened sse resumed"])
        #expect(bot.receive("3"))
        _ = bot.end()
        #expect(try bot.pass() == ["attach sse from 3"])
        #expect(bot.end(.httpStatus, status: 404).last == "attach poll from 3")
    }

    @Test func theFirstCursorCanBeSet() throws {
        let bot = try SpreadbotModel { try $0.setLastEventID("7") }
        #expect(bot.establish() == ["attach ws from 7"])
        #expect(bot.open() == ["transport ws", "opened ws resumed"])
    }

    @Test func aMessageWithoutAnIDLeavesTheCursor() throws {
        let bot = try SpreadbotModel()
        try bot.connect()
        _ = bot.receive("1")
        #expect(bot.receive(nil) && bot.receive(""))
        #expect(bot.session.lastEventID == "1")
    }

    @Test func anIDWithoutAMessageMovesTheCursorUnlessItIsRepeated() throws {
        let bot = try SpreadbotModel()
        try bot.connect()
        func move(to id: String) {
            Array(id.utf8).withUnsafeBytes { bot.session.moved(bot.leg, to: $0) }
        }
        move(to: "1")
        #expect(bot.session.lastEventID == "1")
        for id in ["2", "3"] { #expect(bot.receive(id)) }
        try reattach(bot)
        move(to: "2")
        #expect(bot.session.lastEventID == "3")
        move(to: "4")
        #expect(bot.session.lastEventID == "4")
    }

    @Test func anIDThatNoHeaderCanHoldIsNotACursor() throws {
        let bot = try SpreadbotModel()
        try bot.connect()
        _ = bot.receive("1")
        let unfit: [[UInt8]] = [
            [0x0D], [0x61, 0x0A], [0], [0x7F], [0x1B, 0x5B], [0xFF], [0xC0, 0x80],
            Array(repeating: 0x61, count: 4097),
        ]
        for id in unfit {
            let isTaken = id.withUnsafeBytes { bot.session.received(bot.leg, id: $0) }
            #expect(isTaken)
            #expect(bot.session.lastEventID == "1")
        }
        #expect(bot.receive(String(repeating: "a", count: 4096)))
        #expect(bot.session.lastEventID.utf8.count == 4096)
    }

    @Test func anotherPathClearsTheCursor() throws {
        let bot = try SpreadbotModel()
        try bot.connect()
        _ = bot.receive("1")
        #expect(bot.establish("room") == ["detach", "attach ws from 1"])
        #expect(bot.establish("hall") == ["detach", "attach ws"])
    }

    @Test func theEndKeepsTheCursor() throws {
        let bot = try SpreadbotModel()
        try bot.connect()
        _ = bot.receive("1")
        _ = bot.disconnect()
        bot.session.closed(bot.leg, isClean: true, written: 0)
        _ = bot.done()
        #expect(bot.establish() == ["attach ws from 1"])
    }

    @Test func aDeletedChannelClearsTheCursor() throws {
        let bot = try SpreadbotModel { try $0.setTransports([.poll]) }
        try bot.connect()
        _ = bot.receive("1")
        bot.session.gone(bot.leg, RealtimeError(.gone, "gone"), retryIn: .seconds(1))
        #expect(bot.done() == ["failed gone in 1 s"])
        #expect(bot.session.lastEventID.isEmpty && bot.session.state == .connected)
        #expect(bot.receive("1"))
    }

    // MARK: Duplicates

    @Test func aNewLegMayRepeatDeliveredMessages() throws {
        let bot = try SpreadbotModel()
        try bot.connect()
        for id in 1...300 { #expect(bot.receive("\(id)")) }
        try reattach(bot)
        for id in 45...300 { #expect(!bot.receive("\(id)")) }
        #expect(bot.receive("301"))
    }

    @Test func checkingEndsWithTheFirstNewMessage() throws {
        let bot = try SpreadbotModel()
        try bot.connect()
        for id in ["1", "2", "3"] { _ = bot.receive(id) }
        try reattach(bot)
        #expect(!bot.receive("3"))
        #expect(bot.receive("x"))
        // The server starts its ids over.
        for id in ["1", "2", "3"] { #expect(bot.receive(id)) }
    }

    @Test func onTheSameLegNothingIsADuplicate() throws {
        let bot = try SpreadbotModel()
        try bot.connect()
        for _ in 0..<3 { #expect(bot.receive("1")) }
    }

    @Test func messagesWithoutAnIDAreNeverDuplicates() throws {
        let bot = try SpreadbotModel()
        try bot.connect()
        #expect(bot.receive("1") && bot.receive(nil))
        try reattach(bot)
        #expect(bot.receive(nil) && !bot.receive("1") && bot.receive(nil))
    }

    @Test func anIDThatIsGivenTwiceIsRememberedFromTheSecondTimeOn() throws {
        let bot = try SpreadbotModel()
        try bot.connect()
        _ = bot.receive("again")
        for id in 0..<255 { _ = bot.receive("\(id)") }
        #expect(bot.receive("again"))
        for id in 300..<500 { _ = bot.receive("\(id)") }
        try reattach(bot)
        #expect(!bot.receive("again"))
        #expect(bot.receive("10"))
    }

    // MARK: The return to the WebSocket (B12)

    private func onSSE(
        _ change: (inout SpreadbotConfiguration) throws -> Void = { _ in }
    ) throws -> SpreadbotModel {
        let bot = try SpreadbotModel(change)
        _ = bot.establish()
        _ = bot.end(.httpStatus, status: 400)
        _ = bot.open()
        #expect(bot.receive("1"))
        return bot
    }

    @Test func theWebSocketIsProbedWithoutACursorInGrowingIntervals() throws {
        let bot = try onSSE { $0.maxUpgradeInterval = .seconds(1000) }
        for interval in [300, 600, 1000, 1000] {
            #expect(bot.wait == .seconds(interval))
            #expect(try bot.pass() == ["probe"])
            #expect(bot.wait == nil)
            bot.session.probeEnded(bot.probe, now: bot.now)
            #expect(bot.done() == ["drop probe"])
        }
    }

    @Test func aRefusedProbeRefreshesTheTokensOnce() throws {
        let bot = try SpreadbotModel.withTokens { $0.maxUpgradeInterval = .seconds(300) }
        _ = bot.establish()
        _ = bot.end(.httpStatus, status: 400)
        _ = bot.open()
        func refused() throws -> [String] {
            #expect(try bot.pass() == ["probe"])
            bot.session.probeEnded(bot.probe, isUnauthorized: true, now: bot.now)
            return bot.done()
        }
        // A request had the leg's first tokens refreshed; now the new ones have expired, too.
        bot.session.refusedRequest()
        _ = bot.done()
        _ = bot.refresh("b", "s")
        #expect(try refused() == ["drop probe", "refresh s"])
        _ = bot.refuseRefresh(.connect, isRefused: false)
        #expect(try refused() == ["drop probe", "refresh s"])
        _ = bot.refresh("c", "t")
        #expect(bot.wait == .zero)
        // It is refused with new tokens, too, so tokens are not the cause.
        for _ in 0..<3 { #expect(try refused() == ["drop probe"]) }
        // The last probe failed for another reason, so the next one may refresh again.
        #expect(try bot.pass() == ["probe"])
        bot.session.probeEnded(bot.probe, now: bot.now)
        _ = bot.done()
        #expect(try refused() == ["drop probe", "refresh t"])
    }

    @Test func aProbeThatOpensIsFollowedByTheWebSocket() throws {
        let bot = try onSSE()
        _ = try bot.pass()
        bot.session.probeOpened(bot.probe, now: bot.now)
        #expect(bot.done() == ["drop probe", "detach", "attach ws from 1"])
        #expect(bot.session.transport == .webSocket)
        #expect(bot.open() == ["transport ws", "opened ws resumed"])
        #expect(bot.wait == nil)
    }

    @Test func zeroDisablesProbes() throws {
        let bot = try onSSE { $0.upgradeInterval = .zero }
        #expect(bot.wait == nil)
        _ = bot.network(true)
        #expect(bot.wait == nil)
    }

    @Test func anotherNetworkTriggersTheProbe() throws {
        let bot = try onSSE()
        bot.random = 0.25
        _ = bot.network(true)
        #expect(bot.wait == .milliseconds(250))
        #expect(try bot.pass() == ["probe"])
    }

    @Test func anEndOfTheLegDoesNotMoveTheProbe() throws {
        let bot = try onSSE()
        bot.now = bot.now + .seconds(100)
        _ = bot.end()
        _ = try bot.pass()
        _ = bot.open()
        #expect(bot.wait.map { $0 < .seconds(200) } ?? false)
    }

    @Test func aProbeEndsWithItsLeg() throws {
        let bot = try onSSE()
        _ = try bot.pass()
        #expect(bot.end().first == "drop probe")
        bot.session.probeOpened(bot.probe, now: bot.now)
        #expect(bot.done().isEmpty && bot.session.transport == .sse)
    }

    @Test func anAttemptOfTheWebSocketIsAProbe() throws {
        let bot = try onSSE()
        _ = bot.network(false)
        _ = bot.end(.connectionLost)
        bot.now = bot.now + .seconds(500)
        _ = bot.network(true)
        #expect(try bot.pass() == ["attach ws from 1"])
        _ = bot.end(.httpStatus, status: 400)
        _ = bot.open()
        #expect(bot.wait == .seconds(300))
    }

    @Test func theTopLegIsNotProbed() throws {
        let bot = try SpreadbotModel { try $0.setTransports([.sse, .webSocket]) }
        try bot.connect()
        #expect(bot.wait == nil)
    }
}
