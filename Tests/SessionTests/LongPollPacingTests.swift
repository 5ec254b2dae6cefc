import Testing
import Wire

@testable import Session

private let validators = polledValidators

/// How often a server is polled, whatever it answers.
@Suite struct LongPollPacingTests {
    /// Any static URL: the same cursor again, or none, or one that no request says.
    @Test(
        arguments: [
            (.validators, [], 15), (.validators, validators, 15), (.none, validators, 15),
            (.headerID, [("ETag", "other")], 15), (.headerID, [("Last-Event-ID", "8")], 0),
            (.queryID, [("Last-Event-ID", "7")], 15), (.validators, [("ETag", "0,[1]")], 0),
        ] as [(LongPollCursorMode, [(String, String)], Int)])
    func aCursorThatStaysIsPaced(
        _ mode: LongPollCursorMode, _ fields: [(String, String)], _ wait: Int
    ) throws {
        var poller = try Poller { try $0.setCursor(mode) }
        #expect(
            try poller.answer(200, validators + [("Last-Event-ID", "7")], body: 1) == .message)
        poller.session.delivered(now: poller.now)
        #expect(try poller.answer(200, fields, body: 1, after: .milliseconds(1)) == .message)
        // From the start of the poll, however long the caller took.
        let began = poller.now
        poller.now = poller.now + .seconds(2)
        poller.session.delivered(now: poller.now)
        let due = try #require(poller.session.wakeUp)
        #expect(due - began == max(.seconds(2), .seconds(wait) - .milliseconds(1)))
        // A server that holds its polls is asked at once.
        #expect(try poller.answer(200, fields, body: 1, after: .seconds(1)) == .message)
        poller.session.delivered(now: poller.now)
        #expect(poller.wait == .zero)
    }

    /// A backlog is read without a pause, and no server can ask for more than the ceiling.
    @Test func requestsHaveACeiling() throws {
        var poller = try Poller()
        let began = poller.now
        for number in 1...1200 {
            #expect(try poller.answer(200, [("ETag", "\(number)")], body: 1) == .message)
            #expect(poller.now - began == .milliseconds(10 * max(0, number - 1000)))
            poller.session.delivered(now: poller.now)
        }
        let failing = try Poller { $0.maxDelay = .zero }
        poller = failing
        for number in 1...1100 {
            let wait = Duration.milliseconds(number < 1000 ? 0 : 10)
            #expect(
                try poller.answer(503) == .failed(.httpStatus, retryIn: wait, isFatal: false))
        }
    }
}
