import Session
import Testing
import Wire

/// B14: how sends are transported, their order, and how each ends.
@Suite struct SpreadbotSendTests {
    private static let request = SpreadbotSend.Kind.request(path: "x", contentType: "text/plain")

    private func connected(
        _ change: (inout SpreadbotConfiguration) throws -> Void = { _ in }
    ) throws -> SpreadbotModel {
        let bot = try SpreadbotModel(change)
        try bot.connect()
        return bot
    }

    /// On a leg without frames.
    private func polling(
        _ change: (inout SpreadbotConfiguration) throws -> Void = { _ in }
    ) throws -> SpreadbotModel {
        try connected {
            try $0.setTransports([.poll])
            try change(&$0)
        }
    }

    // MARK: Frames

    @Test func aFrameIsConfirmedByTheNextPong() throws {
        let bot = try connected()
        #expect(bot.send() == ["write 1", "confirm 1"])
        #expect(bot.send(.binary) == ["write 2"])
        #expect(bot.send() == ["write 3"])
        #expect(bot.confirm(1) == ["sent 1 ok", "confirm 3"])
        #expect(bot.confirm(3) == ["sent 2 ok", "sent 3 ok"])
    }

    @Test func writtenFramesMayHaveArrivedAndOthersAreSentAgain() throws {
        let bot = try connected()
        for _ in 1...4 { _ = bot.send() }
        #expect(
            bot.end(written: 2, after: .seconds(10)) == [
                "sent 1 connectionLost", "sent 2 connectionLost",
                "failed connectionLost 1 in 500 ms", "post 3",
            ])
        _ = try bot.pass()
        _ = bot.open()
        #expect(bot.post(3) == ["sent 3 ok", "write 4", "confirm 4"])
    }

    @Test func durableFramesAreSentAgainInOrder() throws {
        let bot = try connected()
        _ = bot.send(isDurable: true)
        _ = bot.send()
        _ = bot.send(isDurable: true)
        #expect(bot.end(written: 3).prefix(1) == ["sent 2 connectionLost"])
        #expect(bot.post(1) == ["sent 1 ok", "post 3"])
    }

    @Test func confirmedFramesAreNotLost() throws {
        let bot = try connected()
        _ = bot.send()
        _ = bot.send()
        #expect(bot.confirm(1) == ["sent 1 ok", "confirm 2"])
        #expect(bot.end(written: 2).first == "sent 2 connectionLost")
    }

    @Test func aCleanCloseConfirmsWrittenFrames() throws {
        let bot = try connected()
        for _ in 1...3 { _ = bot.send() }
        #expect(bot.disconnect() == ["close"])
        bot.session.closed(bot.leg, isClean: true, written: 2)
        let told = bot.done()
        #expect(told.starts(with: ["sent 1 ok", "sent 2 ok", "detach", "sent 3 closed"]))
    }

    @Test func anUncleanCloseConfirmsNothing() throws {
        let bot = try connected()
        for _ in 1...2 { _ = bot.send() }
        _ = bot.disconnect()
        bot.session.closed(bot.leg, isClean: false, written: 1)
        #expect(
            bot.done().starts(with: ["sent 1 connectionLost", "detach", "sent 2 closed"]))
    }

    // MARK: Requests

    @Test func withoutAWebSocketMessagesArePostedOneAfterTheOther() throws {
        let bot = try polling()
        #expect(bot.send() == ["post 1"])
        #expect(bot.send(.binary).isEmpty && bot.send().isEmpty)
        #expect(bot.post(1) == ["sent 1 ok", "post 2"])
        #expect(bot.post(2, .httpStatus) == ["sent 2 httpStatus", "post 3"])
        #expect(bot.post(3, .connectionLost, mayPass: true) == ["sent 3 connectionLost"])
    }

    @Test func eventsOfOtherPostsAreIgnored() throws {
        let bot = try polling()
        _ = bot.send()
        #expect(bot.post(7).isEmpty && bot.post(0).isEmpty)
    }

    @Test func framesAndRequestsShareOneOrder() throws {
        let bot = try connected()
        #expect(bot.send() == ["write 1", "confirm 1"])
        #expect(bot.send(SpreadbotSendTests.request).isEmpty)
        #expect(bot.send().isEmpty)
        #expect(bot.confirm(1) == ["sent 1 ok", "post 2"])
        #expect(bot.post(2) == ["sent 2 ok", "write 3", "confirm 3"])
    }

    @Test func aRunningPostPrecedesFrames() throws {
        let bot = try SpreadbotModel()
        _ = bot.establish()
        #expect(bot.send() == ["post 1"])
        #expect(bot.send().isEmpty)
        #expect(bot.open() == ["transport ws", "opened ws"])
        #expect(bot.post(1) == ["sent 1 ok", "write 2", "confirm 2"])
    }

    @Test func aDurablePostIsRetriedUntilItSucceeds() throws {
        let bot = try polling()
        _ = bot.send(isDurable: true)
        _ = bot.send()
        for (turn, delay) in [500, 1000, 2000, 4000, 8000, 15_000, 15_000].enumerated() {
            let told = bot.post(1, .httpStatus, status: 503, mayPass: true)
            #expect(told.count == 1 && told[0].hasPrefix("failed httpStatus \(turn + 1) in "))
            #expect(bot.wait == .milliseconds(delay))
            #expect(try bot.pass() == ["post 1"])
        }
        #expect(bot.post(1) == ["sent 1 ok", "post 2"])
        #expect(bot.post(2) == ["sent 2 ok"])
        _ = bot.send(isDurable: true)
        _ = bot.post(3, .connect, mayPass: true)
        #expect(bot.wait == .milliseconds(500))
    }

    @Test func retryAfterDelaysADurablePostIfItIsLonger() throws {
        let bot = try polling()
        _ = bot.send(isDurable: true)
        for (asked, delay) in [(90, 90_000), (0, 1000), (100_000, 300_000)] {
            _ = bot.post(1, .httpStatus, status: 503, asked: .seconds(asked), mayPass: true)
            #expect(bot.wait == .milliseconds(delay))
            #expect(try bot.pass() == ["post 1"])
        }
    }

    @Test func cancellingASendEndsItsDelay() throws {
        let bot = try polling()
        _ = bot.send(isDurable: true)
        _ = bot.send(isDurable: true)
        _ = bot.post(1, .connect, mayPass: true)
        bot.session.cancel(1)
        #expect(bot.done() == ["sent 1 cancelled", "post 2"])
    }

    @Test func cancellingAnotherSendKeepsTheDelay() throws {
        let bot = try delayed()
        _ = bot.send(SpreadbotSendTests.request, isDurable: true)
        _ = bot.send()
        bot.session.cancel(2)
        #expect(bot.done() == ["sent 2 cancelled", "write 3"])
        // Cancelling the send itself comes too late, and has no effect either.
        bot.session.cancel(1)
        #expect(bot.done().isEmpty)
        #expect(!bot.end().contains { $0.hasPrefix("post") })
        #expect(bot.wait != nil)
    }

    @Test func aSendThatArrivesAsAFrameEndsItsDelay() throws {
        let bot = try delayed()
        #expect(bot.send(SpreadbotSendTests.request).isEmpty)
        #expect(bot.confirm(1) == ["sent 1 ok", "post 2"])
    }

    /// A durable send that waited to be posted again was sent as a frame.
    private func delayed() throws -> SpreadbotModel {
        let bot = try SpreadbotModel()
        _ = bot.establish()
        _ = bot.send(isDurable: true)
        _ = bot.post(1, .httpStatus, status: 503, asked: .seconds(300), mayPass: true)
        #expect(bot.open() == ["transport ws", "opened ws", "write 1", "confirm 1"])
        return bot
    }

    @Test func aPermanentlyRefusedDurablePostIsDropped() throws {
        let bot = try polling()
        _ = bot.send(isDurable: true)
        #expect(bot.post(1, .httpStatus) == ["sent 1 httpStatus"])
    }

    @Test func aRequestNeedsNoConnection() throws {
        let bot = try SpreadbotModel()
        #expect(bot.send(SpreadbotSendTests.request) == ["post 1"])
        #expect(bot.send() == ["sent 2 closed"])
        #expect(bot.send(isDurable: true).isEmpty)
        #expect(bot.post(1) == ["sent 1 ok"])
        #expect(bot.establish() == ["attach ws", "post 3"])
    }

    // MARK: The queue

    @Test func aFullQueueRejectsTheNewOne() throws {
        let bot = try polling { $0.queueCapacity = 2 }
        _ = bot.send()
        #expect(bot.send().isEmpty && bot.send().isEmpty)
        #expect(bot.send() == ["sent 4 queueFull"])
        #expect(bot.send(isDurable: true).isEmpty)
        #expect(bot.post(1) == ["sent 1 ok", "post 2"])
    }

    @Test func aFullQueueDropsTheOldestOne() throws {
        let bot = try polling {
            $0.queueCapacity = 2
            $0.overflow = .dropOldest
        }
        for _ in 1...3 { _ = bot.send() }
        #expect(bot.send() == ["sent 2 queueFull"])
        #expect(bot.post(1) == ["sent 1 ok", "post 3"])
    }

    @Test func aQueueOfDurableOnesIsStillBounded() throws {
        let bot = try polling {
            $0.queueCapacity = 2
            $0.overflow = .dropOldest
        }
        for _ in 1...3 { _ = bot.send(isDurable: true) }
        for number in 4...50 { #expect(bot.send() == ["sent \(number) queueFull"]) }
    }

    @Test func aSendThatWaitsOrIsPostedCanBeCancelled() throws {
        let bot = try polling()
        for _ in 1...4 { _ = bot.send() }
        for number in [2, 2, 9] as [UInt64] { bot.session.cancel(number) }
        #expect(bot.done() == ["sent 2 cancelled"])
        bot.session.cancel(1)
        #expect(bot.done() == ["cancel post 1", "sent 1 cancelled", "post 3"])
        #expect(bot.post(1).isEmpty)
        #expect(bot.post(3) == ["sent 3 ok", "post 4"])
    }

    @Test func aFrameOfTheWebSocketCannotBeCancelled() throws {
        let bot = try connected()
        _ = bot.send()
        bot.session.cancel(1)
        #expect(bot.done().isEmpty)
        #expect(bot.confirm(1) == ["sent 1 ok"])
    }

    @Test func aRequestThatHasNotStartedIsWithdrawn() throws {
        let bot = try polling()
        bot.session.submit(
            SpreadbotSend(number: 1, kind: .text, payload: [], key: "k"), now: bot.now)
        bot.session.establish(path: "hall", now: bot.now)
        #expect(bot.done() == ["detach", "sent 1 closed", "attach poll"])
    }

    @Test func withoutANetworkRequestsWait() throws {
        let bot = try polling { $0.queueCapacity = 1 }
        _ = bot.network(false)
        #expect(bot.send().isEmpty)
        #expect(bot.send() == ["sent 2 queueFull"])
        #expect(bot.network(true) == ["post 1"])
    }

    @Test func aMessageOfAnotherPathIsPostedThere() throws {
        let bot = try connected()
        #expect(bot.send(isDurable: true, to: "room") == ["write 1", "confirm 1"])
        #expect(bot.send(isDurable: true, to: "hall").isEmpty)
        #expect(bot.confirm(1) == ["sent 1 ok", "post 2"])
        #expect(bot.establish("hall") == ["detach", "attach ws"])
        #expect(bot.post(2) == ["sent 2 ok"])
    }

    @Test func sendsAfterACancelledOneAreSent() throws {
        let bot = try polling()
        #expect(bot.send() == ["post 1"])
        #expect(bot.send(SpreadbotSendTests.request).isEmpty)
        bot.session.cancel(1)
        #expect(bot.done() == ["cancel post 1", "sent 1 cancelled", "post 2"])
    }

    @Test func aRequestDoesNotWaitForAConnection() throws {
        let bot = try SpreadbotModel()
        #expect(bot.send(isDurable: true).isEmpty)
        // There may never be one.
        #expect(bot.send(SpreadbotSendTests.request) == ["post 2"])
        _ = bot.establish()
        _ = bot.disconnect()
        #expect(bot.post(2) == ["sent 2 ok"])
        // Requests that wait in a line outlive the connection.
        _ = bot.establish()
        #expect(bot.post(1) == ["sent 1 ok"])
        for _ in 3...5 { _ = bot.send(SpreadbotSendTests.request) }
        #expect(!bot.disconnect().contains { $0.hasPrefix("sent") })
        #expect(bot.post(3) == ["sent 3 ok", "post 4"])
        #expect(bot.post(4) == ["sent 4 ok", "post 5"])
    }

    @Test(arguments: [false, true]) func sendsOfAnEarlierRunKeepTheirOrder(
        isEstablished: Bool
    ) throws {
        let bot = try SpreadbotModel()
        bot.restore()
        bot.restore(SpreadbotSendTests.request)
        #expect(bot.done().isEmpty)
        if isEstablished {
            #expect(bot.establish() == ["attach ws", "post 1"])
            #expect(bot.post(1) == ["sent 1 ok", "post 2"])
        } else {
            #expect(bot.send(SpreadbotSendTests.request) == ["post 2"])
            #expect(bot.post(2) == ["sent 2 ok", "post 3"])
            #expect(bot.post(3) == ["sent 3 ok"])
        }
    }

    @Test func aPauseReportsWrittenSendsAndKeepsDurableOnes() throws {
        let bot = try connected()
        _ = bot.send()
        _ = bot.send(isDurable: true)
        bot.session.written(bot.leg, 2)
        #expect(bot.done() == ["sent 1 ok", "sent 2 ok"])
        bot.session.written(bot.leg, 2)
        #expect(bot.done().isEmpty)
        // The server may not have it: it is sent again, and not reported a second time.
        #expect(bot.end().last == "post 2")
        #expect(bot.post(2) == ["forget 2"])
    }

    // MARK: The end

    @Test func disconnectFailsWaitingSendsAndKeepsDurableOnes() throws {
        let bot = try polling()
        _ = bot.send()
        _ = bot.send(isDurable: true)
        _ = bot.send()
        #expect(
            bot.disconnect() == [
                "detach", "cancel post 1", "sent 1 closed", "sent 3 closed", "transport none",
                "disconnected ok",
            ])
        #expect(bot.post(1).isEmpty)
        #expect(bot.establish() == ["attach poll", "post 2"])
    }

    @Test func aMessageIsRefusedWhileTheWebSocketCloses() throws {
        let bot = try connected()
        _ = bot.disconnect()
        #expect(bot.send() == ["sent 1 closed"])
        #expect(bot.send(isDurable: true).isEmpty)
        #expect(bot.send(SpreadbotSendTests.request).isEmpty)
        bot.session.closed(bot.leg, isClean: true, written: 0)
        #expect(bot.done().last == "post 3")
        #expect(bot.post(2) == ["sent 3 ok"])
        #expect(bot.establish() == ["attach ws", "post 2"])
    }

    @Test func waitingSendsEndWithTheFatalError() throws {
        let bot = try polling()
        _ = bot.send()
        _ = bot.send()
        let told = bot.end(.httpStatus, status: 403, after: .seconds(1))
        #expect(told.contains("sent 1 httpStatus") && told.contains("sent 2 httpStatus"))
    }

    @Test func messagesForOnePathDoNotGoToAnother() throws {
        let bot = try polling()
        _ = bot.send()
        _ = bot.send()
        _ = bot.send(SpreadbotSendTests.request)
        #expect(
            bot.establish("hall") == [
                "detach", "cancel post 1", "sent 1 closed", "sent 2 closed", "attach poll",
                "post 3",
            ])
    }

    @Test func aNewEstablishReportsWrittenFramesAsLost() throws {
        let bot = try connected()
        _ = bot.send()
        #expect(bot.establish() == ["detach", "sent 1 connectionLost", "attach ws"])
    }

    // MARK: The rules of its POST

    private func posted(_ client: RESTClientModel) throws -> RESTSession.ID {
        let send = SpreadbotSend(number: 1, kind: .binary, payload: [1], key: "k", entry: nil)
        let id = try client.submit("POST", body: .bytes([1])) { $0.setRules(for: send) }
        _ = client.done()
        return id
    }

    @Test func aPostTakesAsLongAsItsBytesArrive() throws {
        let client = RESTClientModel()
        let id = try posted(client)
        for _ in 0..<100 {
            #expect(client.pass(.milliseconds(4999)) == [])
            client.session.sent(id, now: client.now)
        }
        #expect(client.pass(.milliseconds(5000)) == ["time out 1"])
    }

    @Test func aPostDoesNotWaitLongForAServerThatAsksForIt() throws {
        for (seconds, done) in [(30, []), (31, ["finish 1 httpStatus 503 (1)"])] {
            let client = RESTClientModel()
            let id = try posted(client)
            #expect(client.answer(id, 503, ["Retry-After": "\(seconds)"]) == done)
        }
    }
}
