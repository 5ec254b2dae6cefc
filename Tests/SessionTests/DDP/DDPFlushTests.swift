import Documents
import Session
import Testing
import Wire

/// Flushes that take several turns.
struct DDPFlushTests {
    private static let count = 50

    /// A client that connects again while the server has other documents. The flush that follows
    /// has begun, with the end of the only subscription that was ready.
    private func flushing(_ change: (inout DDPConfiguration) -> Void = { _ in }) -> DDPModel {
        let model = DDPModel.connected(change)
        _ = model.subscribe("all")
        for number in 0..<DDPFlushTests.count { model.added("a\(number)") }
        model.ready("s1")
        _ = model.done()
        _ = model.reopen()
        model.session.flushSteps = 5
        model.confirm("T")
        for number in 0..<DDPFlushTests.count { model.added("b\(number)") }
        model.ready("s1")
        _ = model.done()
        return model
    }

    /// What the end of that flush reports.
    private var lines: [String] {
        let gone = (0..<DDPFlushTests.count).map { "a\($0) gone" }
        return gone + (0..<DDPFlushTests.count).map { "b\($0) {}" }
    }

    @Test func aLongFlushTakesSeveralTurns() {
        let model = flushing()
        var turns = 0
        while model.session.isFlushing {
            #expect(model.done() == [])
            model.session.continueFlush(model.now)
            turns += 1
        }
        #expect(turns > 3 * DDPFlushTests.count / 5)
        #expect(model.done() == lines)
        #expect(model.session.store.count(of: "c") == DDPFlushTests.count)
    }

    @Test func timersWaitForTheEnd() {
        let model = flushing { $0.heartbeatInterval = .zero }
        model.call("unknown") { $0.timeout = .seconds(1) }
        _ = model.done()
        #expect(model.session.wakeUp == nil)
        model.now = model.now + .seconds(2)
        model.session.timeReached(model.now)
        #expect(model.done() == [])
        model.finishFlush()
        #expect(model.done() == lines)
        model.pass(.zero)
        #expect(model.done() == ["result 1 timeout", "done 1 timeout"])
    }

    @Test func theHeartbeatContinues() {
        let model = flushing()
        for _ in 0..<2 {
            model.now = model.now + .seconds(18)
            #expect(model.session.wakeUp.map { $0 <= model.now } == true)
            model.session.timeReached(model.now)
        }
        #expect(model.done() == ["> ping"] && model.session.isFlushing)
    }

    @Test func readersSeeAllOfIt() {
        let model = flushing()
        #expect(model.document("b0") == "{}")
        #expect(model.session.store.count(of: "c") == DDPFlushTests.count)
        #expect(model.done() == lines)
        // What follows is left for the driver.
        #expect(model.session.isFlushing)
        model.finishFlush()
        #expect(model.done() == [])
    }

    @Test func writersSeeAllOfIt() {
        let model = flushing()
        model.stub = { session, _ in
            let count = try? session.updateInStub("c", [:], ["$set": ["n": 1]], isMulti: true)
            return .success(.number(Double(count ?? -1)))
        }
        #expect(model.call("stub") == .number(Double(DDPFlushTests.count)))
        #expect(!model.session.isFlushing)
        let done = model.done()
        #expect(Array(done.prefix(lines.count)) == lines)
        #expect(done.count == lines.count + DDPFlushTests.count + 1)
    }

    @Test func theNextMessageFinishesIt() {
        let model = flushing()
        model.added("x")
        #expect(model.done() == lines + ["x {}"])
    }

    @Test func theEndOfTheConnectionFinishesIt() {
        let lost = flushing()
        lost.lose()
        #expect(lost.done() == lines + ["waiting"])
        let ended = flushing()
        ended.session.disconnect(now: ended.now)
        #expect(ended.done() == lines + ["> disconnect", "close", "offline"])
        let replaced = flushing()
        replaced.session.reconnect(now: replaced.now)
        #expect(replaced.done() == lines + ["drop", "connecting", "dial"])
        let closed = flushing()
        closed.session.close(now: closed.now)
        let done = closed.done()
        #expect(Array(done.prefix(lines.count)) == lines)
        #expect(closed.session.store.count(of: "c") == DDPFlushTests.count)
    }

    @Test func whatItsMessageDoesFollows() {
        let model = DDPModel.connected { $0.bufferInterval = .seconds(1) }
        let handle = model.subscribe("all")
        model.call("remote")
        _ = model.done()
        model.session.flushSteps = 5
        for number in 0..<20 { model.added("\(number)") }
        model.result(1)
        #expect(model.done() == [] && model.session.isFlushing)
        model.finishFlush()
        #expect(model.done() == (0..<20).map { "\($0) {}" } + ["result 1 1"])
        for number in 20..<40 { model.added("\(number)") }
        model.server(#"{"msg":"nosub","id":"s1"}"#)
        #expect(model.done() == [] && model.session.isFlushing)
        model.finishFlush()
        #expect(model.done() == (20..<40).map { "\($0) {}" } + ["stopped \(handle) "])
    }

    @Test func documentsThatAreTooManyAreNotApplied() {
        let model = DDPModel.connected()
        model.session.store = DocumentStore(maximumBytes: 20_000)
        _ = model.subscribe("all")
        model.added("old")
        model.ready("s1")
        _ = model.done()
        _ = model.reopen()
        model.session.flushSteps = 5
        model.confirm("T")
        // Larger in the store than as messages, which are limited, too.
        let fields = (0..<20).map { "\"f\($0)\":1" }.joined(separator: ",")
        for number in 0..<30 { model.added("b\(number)", "{\(fields)}") }
        model.ready("s1")
        // A reader does not end the client.
        #expect(model.document("old") == "{}")
        #expect(model.session.status == .connected)
        model.finishFlush()
        #expect(model.session.status == .failed)
        #expect(model.document("old") == "{}" && model.document("b0") == nil)
    }
}
