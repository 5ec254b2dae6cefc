import Session
import Testing
import Wire

/// `maxRounds`: what follows when all legs have failed.
@Suite struct SpreadbotRoundTests {
    @Test func anotherRoundFollowsOneThatFailed() throws {
        let bot = try SpreadbotModel {
            $0.maxRounds = 3
            $0.maxReconnects = 0
        }
        _ = bot.establish()
        for delay in [500, 1000] {
            #expect(bot.end(.connect, reached: false) == ["failed connect in 0 s", "attach sse"])
            #expect(bot.end(.connect, reached: false) == ["failed connect in 0 s", "attach poll"])
            let wait = Duration.milliseconds(delay)
            #expect(
                bot.end(.connect, reached: false) == [
                    "failed reconnectsExhausted in \(wait.readable)"
                ])
            #expect(bot.session.state == .connecting && bot.session.phase == .backoff)
            #expect(bot.session.transport == .webSocket && bot.wait == wait)
            #expect(try bot.pass() == ["attach ws"])
        }
        _ = bot.end(.connect, reached: false)
        _ = bot.end(.connect, reached: false)
        #expect(
            bot.end(.connect, reached: false) == [
                "detach", "failed reconnectsExhausted fatal", "transport none",
                "disconnected reconnectsExhausted",
            ])
    }

    /// A server that is away for an hour, without a limit of rounds.
    @Test func withoutALimitOfRoundsAnyOutageIsSurvived() throws {
        let bot = try SpreadbotModel { $0.maxRounds = 0 }
        bot.random = 0.5
        try bot.connect()
        let end = bot.now + .seconds(3600)
        var rounds: [Duration] = []
        var attempts = 0
        _ = bot.end()
        while bot.now < end {
            try #require(bot.session.state == .connecting)
            if bot.session.phase == .backoff { _ = try bot.pass() }
            attempts += 1
            let told = bot.end(.connect, reached: false)
            if told[0].contains("Exhausted") { rounds.append(try #require(bot.wait)) }
        }
        let first = [750, 1500, 3000, 6000, 12_000].map { Duration.milliseconds($0) }
        #expect(rounds.prefix(5) == first[...])
        #expect(rounds.dropFirst(5).allSatisfy { $0 == .milliseconds(22_500) })
        #expect(attempts < 1300)
        while bot.session.phase == .backoff { _ = try bot.pass() }
        #expect(bot.open().last?.hasPrefix("opened") == true)
        // After a stable connection, delays start short again.
        #expect(bot.end(after: .seconds(10)).last == "failed connectionLost 1 in 750 ms")
        while bot.session.phase == .backoff { _ = try bot.pass() }
        while rounds.last != .milliseconds(750) {
            if bot.session.phase == .backoff { _ = try bot.pass() }
            let told = bot.end(.connect, reached: false)
            if told[0].contains("Exhausted") { rounds.append(try #require(bot.wait)) }
        }
    }

    @Test func aNewRoundTriesEveryLegAgain() throws {
        let bot = try SpreadbotModel {
            $0.maxRounds = 0
            try $0.setTransports([.webSocket, .poll])
        }
        _ = bot.establish()
        for _ in 0..<3 {
            if bot.session.phase == .backoff { _ = try bot.pass() }
            _ = bot.open()
            _ = bot.end()
        }
        #expect(bot.session.transport == .poll)
        #expect(bot.end(.httpStatus, status: 400).count == 1)
        #expect(bot.session.transport == .webSocket && bot.wait == .milliseconds(500))
        #expect(try bot.pass() == ["attach ws"])
    }

    @Test(arguments: [("20", 20_000), ("0", 500), ("100000", 300_000)])
    func aRoundWaitsAsLongAsTheServerAsks(asked: String, delay: Int) throws {
        let bot = try SpreadbotModel {
            $0.maxRounds = 0
            $0.maxReconnects = 0
            try $0.setTransports([.poll])
        }
        _ = bot.establish()
        let fields = [HeaderField(name: "Retry-After", value: asked)]
        _ = bot.end(.httpStatus, status: 503, fields: fields)
        #expect(bot.wait == .milliseconds(delay))
    }

    @Test func aRefusalEndsAnyRound() throws {
        let bot = try SpreadbotModel {
            $0.maxRounds = 0
            try $0.setTransports([.poll])
        }
        _ = bot.establish()
        #expect(bot.end(.httpStatus, status: 403).last == "disconnected httpStatus")
        _ = bot.establish()
        #expect(bot.end(.httpStatus, status: 401).last == "disconnected auth")
    }

    @Test func aNetworkOutageResetsTheRounds() throws {
        let bot = try SpreadbotModel {
            $0.maxRounds = 2
            $0.maxReconnects = 0
            try $0.setTransports([.poll])
        }
        _ = bot.establish()
        for _ in 0..<10 {
            _ = bot.end(.connect, reached: false)
            #expect(bot.session.phase == .backoff && bot.wait == .milliseconds(500))
            #expect(bot.network(false) == ["failed connect"])
            #expect(bot.session.phase == .offline && bot.wait == nil)
            #expect(bot.network(true).isEmpty)
            #expect(try bot.pass() == ["attach poll"])
        }
        #expect(bot.disconnect().last == "disconnected ok")
    }

    @Test func disconnectEndsTheWaitBetweenRounds() throws {
        let bot = try SpreadbotModel {
            $0.maxRounds = 0
            $0.maxReconnects = 0
            try $0.setTransports([.poll])
        }
        _ = bot.establish()
        _ = bot.end(.connect, reached: false)
        #expect(bot.disconnect() == ["transport none", "disconnected ok"])
        #expect(bot.wait == nil)
    }
}
