import Session
import Testing
import Wire

/// B2, B9 to B11 and B15: the ladder, counts, and ends.
@Suite struct SpreadbotLadderTests {
    @Test func theLegsFollowEachOtherAtOnceWhenTheyAreUnsupported() throws {
        let bot = try SpreadbotModel()
        #expect(bot.establish() == ["attach ws"])
        #expect(bot.session.phase == .dialing && bot.session.transport == .webSocket)
        #expect(bot.end(.httpStatus, status: 400) == ["failed httpStatus in 0 s", "attach sse"])
        #expect(bot.end(.contentType, status: 200) == ["failed contentType in 0 s", "attach poll"])
        #expect(
            bot.end(.httpStatus, status: 400) == [
                "detach", "failed reconnectsExhausted fatal",
                "transport none",
                "disconnected reconnectsExhausted",
            ])
        #expect(bot.session.state == .disconnected && bot.wait == nil)
    }

    @Test func theLadderHasTheChosenLegsInOrder() throws {
        let bot = try SpreadbotModel { try $0.setTransports([.poll, .webSocket]) }
        #expect(bot.establish() == ["attach poll"])
        #expect(bot.end(.httpStatus, status: 400).last == "attach ws")
        #expect(bot.end(.httpStatus, status: 400).last == "disconnected reconnectsExhausted")
    }

    @Test(arguments: [(0.0, [500, 1000, 2000]), (0.5, [750, 1500, 3000])])
    func threeAttemptsFollowOneThatFailed(random: Double, delays: [Int]) throws {
        let bot = try SpreadbotModel()
        bot.random = random
        _ = bot.establish()
        for (index, delay) in delays.enumerated() {
            let wait = Duration.milliseconds(delay)
            #expect(
                bot.end(.connect, reached: false) == [
                    "failed connect \(index + 1) in \(wait.readable)"
                ])
            #expect(bot.wait == wait && bot.session.phase == .backoff)
            #expect(try bot.pass() == ["attach ws"])
        }
        #expect(bot.end(.connect, reached: false) == ["failed connect in 0 s", "attach sse"])
        // The count starts over.
        #expect(bot.end(.connect, reached: false).count == 1)
        #expect(bot.wait == .milliseconds(delays[0]))
    }

    @Test func theDelayHasAMaximum() throws {
        let bot = try SpreadbotModel {
            $0.maxReconnects = 100
            $0.maxDelay = .seconds(3)
        }
        bot.random = 0.999_999
        _ = bot.establish()
        var longest = Duration.zero
        for _ in 0..<100 {
            _ = bot.end(.connect, reached: false)
            longest = max(longest, try #require(bot.wait))
            _ = try bot.pass()
        }
        #expect(longest > .milliseconds(2990) && longest <= .seconds(3))
    }

    @Test func retryAfterAppliesIfItIsLonger() throws {
        let bot = try SpreadbotModel { try $0.setTransports([.poll]) }
        _ = bot.establish()
        let wait = [("20", 20_000), ("0", 1000), ("100000", 300_000)]
        for (asked, delay) in wait {
            let fields = [HeaderField(name: "Retry-After", value: asked)]
            _ = bot.end(.httpStatus, status: 503, fields: fields)
            #expect(bot.wait == .milliseconds(delay))
            _ = try bot.pass()
        }
    }

    @Test func aMessageResetsTheCount() throws {
        let bot = try SpreadbotModel()
        _ = bot.establish()
        for id in 1...10 {
            #expect(bot.end(.connect, reached: false) == ["failed connect 1 in 500 ms"])
            _ = try bot.pass()
            _ = bot.open()
            #expect(bot.receive(id.isMultiple(of: 2) ? nil : "\(id)"))
            #expect(bot.end() == ["failed connectionLost 1 in 500 ms"])
            _ = try bot.pass()
            _ = bot.open()
            #expect(bot.receive(nil))
            _ = bot.end()
            #expect(bot.wait == .milliseconds(500))
            _ = try bot.pass()
            _ = bot.open()
            #expect(bot.receive(nil))
            bot.session.disconnect(now: bot.now)
            _ = bot.done()
            _ = bot.establish()
        }
    }

    @Test func aLegThatLastsTenSecondsResetsTheCount() throws {
        let bot = try SpreadbotModel()
        _ = bot.establish()
        for _ in 0..<10 {
            _ = bot.open()
            #expect(bot.end(after: .seconds(10)) == ["failed connectionLost 1 in 500 ms"])
            #expect(try bot.pass() == ["attach ws"])
        }
    }

    @Test func threeShortLivesMakeALegUnsupported() throws {
        let bot = try SpreadbotModel { $0.maxReconnects = 50 }
        _ = bot.establish()
        for count in 1...2 {
            _ = bot.open()
            let wait = Duration.milliseconds(500 * count)
            #expect(
                bot.end(after: .milliseconds(9999)) == [
                    "failed connectionLost \(count) in \(wait.readable)"
                ])
            _ = try bot.pass()
        }
        _ = bot.open()
        #expect(
            bot.end(after: .seconds(9)) == ["failed connectionLost in 0 s", "attach sse"])
    }

    @Test func aLegWithShortLivesIsTriedAgainLater() throws {
        let bot = try SpreadbotModel {
            try $0.setTransports([.webSocket, .poll])
            $0.upgradeInterval = .seconds(20)
        }
        _ = bot.establish()
        for _ in 0..<3 {
            if bot.session.phase == .backoff { _ = try bot.pass() }
            _ = bot.open()
            _ = bot.end()
        }
        #expect(bot.session.transport == .poll)
        _ = bot.open()
        #expect(bot.wait == .seconds(20))
        #expect(try bot.pass() == ["probe"])
    }

    @Test func aMessageEndsARowOfShortLives() throws {
        let bot = try SpreadbotModel()
        _ = bot.establish()
        for turn in 0..<20 {
            _ = bot.open()
            if turn % 3 == 2 { _ = bot.receive(nil) }
            #expect(bot.end().count == 1)
            #expect(try bot.pass() == ["attach ws"])
        }
    }

    @Test func aRefusalIsFatal() throws {
        for code in [1008, 3003, 4403] as [UInt16] {
            let bot = try SpreadbotModel()
            try bot.connect()
            #expect(
                bot.end(close: code) == [
                    "detach", "failed connectionLost fatal", "transport none",
                    "disconnected connectionLost",
                ])
            #expect(bot.wait == nil && bot.session.state == .disconnected)
        }
    }

    @Test func noReconnectsMeansOneAttemptForEachLeg() throws {
        let bot = try SpreadbotModel { $0.maxReconnects = 0 }
        _ = bot.establish()
        #expect(bot.end(.connect, reached: false).last == "attach sse")
        #expect(bot.end(.connect, reached: false).last == "attach poll")
        #expect(
            bot.end(.connect, reached: false).last == "disconnected reconnectsExhausted")
    }

    @Test func theFinalErrorNamesEachLeg() throws {
        let bot = try SpreadbotModel { try $0.setTransports([.webSocket, .poll]) }
        _ = bot.establish()
        _ = bot.end(.httpStatus, status: 400)
        bot.session.ended(
            bot.leg, SpreadbotLegEnd(error: RealtimeError(.noContent, "nothing here")), written: 0,
            now: bot.now, wallClock: 0, random: 0)
        var told = ""
        while let action = bot.session.nextAction() {
            if case .report(.disconnected(let error)) = action { told = error?.message ?? "" }
        }
        #expect(told.contains("WebSocket: the leg ended; long poll: nothing here"))
    }

    // MARK: Reports

    @Test func theTransportIsReportedWhenItChanges() throws {
        let bot = try SpreadbotModel()
        _ = bot.establish()
        #expect(bot.open() == ["transport ws", "opened ws"])
        _ = bot.end()
        _ = try bot.pass()
        #expect(bot.open() == ["opened ws"])
        _ = bot.end(close: 1002)
        #expect(bot.open() == ["transport sse", "opened sse"])
        #expect(bot.disconnect() == ["detach", "transport none", "disconnected ok"])
    }

    @Test func eventsOfOlderLegsAreIgnored() throws {
        let bot = try SpreadbotModel()
        _ = bot.establish()
        let old = bot.leg
        _ = bot.establish()
        let end = SpreadbotLegEnd(error: RealtimeError(.connect, "late"))
        bot.session.ended(old, end, written: 0, now: bot.now, wallClock: 0, random: 0)
        bot.session.opened(old, now: bot.now)
        bot.session.confirmed(old, 1, now: bot.now)
        bot.session.closed(old, isClean: true, written: 1)
        bot.session.gone(old, RealtimeError(.gone, "late"), retryIn: nil)
        let isTaken = bot.session.received(old, id: nil)
        #expect(!isTaken)
        #expect(bot.done().isEmpty && bot.session.phase == .dialing)
    }

    // MARK: Offline (B11)

    @Test func withoutANetworkNothingIsTriedOrCounted() throws {
        let bot = try SpreadbotModel()
        _ = bot.network(false)
        // Reported once, without a time.
        #expect(bot.establish() == ["failed connect"])
        #expect(bot.session.phase == .offline && bot.wait == nil)
        #expect(bot.network(false).isEmpty)
        bot.random = 0.5
        #expect(bot.network(true).isEmpty)
        #expect(bot.wait == .milliseconds(500))
        #expect(try bot.pass() == ["attach ws"])
    }

    /// The host knows better than the monitor, until the attempt has failed. It is not counted.
    @Test func theHostEndsAWait() throws {
        let bot = try SpreadbotModel()
        _ = bot.network(false)
        _ = bot.establish()
        #expect(bot.retryNow().isEmpty && bot.wait == .zero)
        #expect(try bot.pass() == ["attach ws"])
        for code in [RealtimeError.Code.connect, .handshake] {
            #expect(bot.network(false).isEmpty)
            #expect(bot.end(code, reached: false) == ["failed \(code)"])
            #expect(bot.session.phase == .offline && bot.wait == nil)
            #expect(bot.retryNow().isEmpty && bot.wait == .zero)
            #expect(try bot.pass() == ["attach ws"])
        }
    }

    @Test(arguments: [RealtimeError.Code.connect, .handshake]) func aLegThatEndsOfflineWaits(
        _ code: RealtimeError.Code
    ) throws {
        let bot = try SpreadbotModel()
        _ = bot.establish()
        _ = bot.end(.connect, reached: false)
        _ = try bot.pass()
        _ = bot.network(false)
        // The failure reports the wait for the network.
        #expect(bot.end(code, reached: false) == ["failed \(code)"])
        #expect(bot.network(false).isEmpty)
        #expect(bot.session.phase == .offline && bot.wait == nil)
        _ = bot.network(true)
        #expect(try bot.pass() == ["attach ws"])
        #expect(bot.end(.connect, reached: false) == ["failed connect 1 in 500 ms"])
    }

    @Test func aDelayEndsWithTheNetwork() throws {
        let bot = try SpreadbotModel()
        _ = bot.establish()
        _ = bot.end(.httpStatus, status: 400)
        _ = bot.end(.connect, reached: false)
        #expect(bot.session.phase == .backoff && bot.session.transport == .sse)
        #expect(bot.network(false) == ["failed connect"])
        #expect(bot.session.phase == .offline && bot.wait == nil)
        _ = bot.network(true)
        #expect(try bot.pass() == ["attach ws"])
    }

    @Test func eachWaitIsReported() throws {
        let bot = try SpreadbotModel()
        _ = bot.network(false)
        #expect(bot.establish() == ["failed connect"])
        _ = bot.disconnect()
        #expect(bot.establish() == ["failed connect"])
        #expect(bot.network(true).isEmpty && bot.network(false) == ["failed connect"])
    }

    @Test func anOpenLegSurvivesAnOutage() throws {
        let bot = try SpreadbotModel()
        try bot.connect()
        #expect(bot.network(false).isEmpty && bot.session.state == .connected)
        #expect(bot.network(true).isEmpty && bot.session.state == .connected)
    }

    // MARK: The end (B15)

    @Test func disconnectClosesAWebSocketNormally() throws {
        let bot = try SpreadbotModel()
        try bot.connect()
        #expect(bot.disconnect() == ["close"])
        #expect(bot.session.state == .disconnected && !bot.receive(nil))
        #expect(bot.disconnect().isEmpty)
        bot.session.closed(bot.leg, isClean: true, written: 0)
        #expect(bot.done() == ["detach", "transport none", "disconnected ok"])
        #expect(bot.wait == nil)
    }

    @Test func aFailureWhileClosingIsNotAnError() throws {
        let bot = try SpreadbotModel()
        try bot.connect()
        _ = bot.disconnect()
        #expect(bot.end(.timeout) == ["detach", "transport none", "disconnected ok"])
    }

    @Test func disconnectEndsEveryStage() throws {
        let stages: [(SpreadbotModel) -> Void] = [
            { _ in }, { _ = $0.end(.connect, reached: false) },
            {
                _ = $0.network(false); _ = $0.end(.connect, reached: false)
            },
            { _ = $0.end(.httpStatus, status: 401) },
        ]
        for stage in stages {
            let bot = try SpreadbotModel.withTokens()
            _ = bot.establish()
            stage(bot)
            #expect(bot.session.state == .connecting)
            #expect(bot.disconnect().suffix(2) == ["transport none", "disconnected ok"])
            #expect(bot.session.state == .disconnected && bot.wait == nil)
        }
    }

    @Test func establishWhileItClosesAnswersDisconnectFirst() throws {
        let bot = try SpreadbotModel()
        try bot.connect()
        _ = bot.disconnect()
        #expect(
            bot.establish() == ["detach", "transport none", "disconnected ok", "attach ws"])
    }

    @Test func anotherAttemptAfterTheEndBeginsAtTheTop() throws {
        let bot = try SpreadbotModel { $0.maxReconnects = 0 }
        _ = bot.establish()
        while bot.session.state != .disconnected { _ = bot.end(.connect, reached: false) }
        #expect(bot.establish() == ["attach ws"])
    }
}
