import Testing
import Wire

@testable import Session

private let validators = polledValidators

/// How often a server is polled, whatever it answers.
@Suite struct LongPollPacingTests {
    /// The same cursor again, or none after one.
    @Test(
        arguments: [
            (.validators, [], 15), (.validators, validators, 15),
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

    /// For example, servers behind one address that each have their own cursor.
    @Test(arguments: [2, 3, 8])
    func aRepeatedCursorIsPaced(period: Int) throws {
        var poller = try Poller()
        func next(
            _ poller: inout Poller, _ number: Int, after hold: Duration = .zero
        ) throws -> Duration? {
            try poller.message("a", [("ETag", "\(number % period)")], after: hold)
        }
        for number in 0..<period { #expect(try next(&poller, number) == .zero) }
        for number in 0..<20 { #expect(try next(&poller, number) == .seconds(15)) }
        // A server that holds its polls is asked at once, and may repeat its cursors.
        for number in 20..<(20 + period) {
            #expect(try next(&poller, number, after: .seconds(1)) == .zero)
        }
        #expect(try poller.answer(304, after: .seconds(1)) == .nothing)
        for number in (20 + period)..<(20 + 2 * period - 1) {
            #expect(try next(&poller, number) == .zero)
        }
    }

    /// Polls without a cursor: by choice, or because the server's answers have none in the
    /// configured form.
    private static let withoutCursor: [(LongPollCursorMode, [(String, String)])] = [
        (.validators, []), (.none, validators), (.headerID, [("ETag", "1")]), (.queryID, []),
    ]

    /// A server that knows its client by a cookie sends what has gathered, then holds a poll. A
    /// page that shows the time differs in each poll.
    @Test(arguments: withoutCursor)
    func withoutACursorNewMessagesComeInBursts(
        _ mode: LongPollCursorMode, _ fields: [(String, String)]
    ) throws {
        var poller = try Poller { try $0.setCursor(mode) }
        var number = 0
        func next(_ poller: inout Poller, after hold: Duration = .zero) throws -> Duration? {
            number += 1
            return try poller.message("message \(number)", fields, after: hold)
        }
        for _ in 0..<20 { #expect(try next(&poller) == .zero) }
        for _ in 0..<3 {
            let hold = Duration.milliseconds(200)
            #expect(try next(&poller, after: hold) == .seconds(15) - hold)
        }
        // After a held poll, with any answer, the burst is allowed again.
        #expect(try next(&poller, after: .seconds(1)) == .zero)
        for _ in 0..<20 { #expect(try next(&poller) == .zero) }
        #expect(try next(&poller) == .seconds(15))
        #expect(try poller.answer(204, after: .seconds(20)) == .nothing)
        #expect(poller.wait == .zero)
        for _ in 0..<20 { #expect(try next(&poller) == .zero) }
        #expect(try next(&poller) == .seconds(15))
        #expect(try poller.answer(204) == .nothing)
        #expect(try next(&poller) == .seconds(15))
    }

    @Test(arguments: withoutCursor)
    func withoutACursorBodiesThatAlternateArePaced(
        _ mode: LongPollCursorMode, _ fields: [(String, String)]
    ) throws {
        var poller = try Poller { try $0.setCursor(mode) }
        for _ in 0..<10 {
            #expect(try poller.message("a", fields) == .zero)
            #expect(try poller.message("b", fields) == .zero)
        }
        for _ in 0..<3 {
            #expect(try poller.message("a", fields) == .seconds(15))
            #expect(try poller.message("b", fields) == .seconds(15))
        }
    }

    /// Any static URL.
    @Test(arguments: withoutCursor)
    func withoutACursorRepeatsArePaced(
        _ mode: LongPollCursorMode, _ fields: [(String, String)]
    ) throws {
        var poller = try Poller { try $0.setCursor(mode) }
        for _ in 0...4 { #expect(try poller.message("same", fields) == .zero) }
        for _ in 0..<3 {
            let hold = Duration.milliseconds(200)
            #expect(try poller.message("same", fields, after: hold) == .seconds(15) - hold)
        }
        // It differs, although the length is the same.
        for _ in 0...4 { #expect(try poller.message("news", fields) == .zero) }
        #expect(try poller.message("news", fields) == .seconds(15))
        // After a held poll, with any answer, four repeats more are allowed.
        #expect(try poller.message("news", fields, after: .seconds(1)) == .zero)
        for _ in 0..<4 { #expect(try poller.message("news", fields) == .zero) }
        #expect(try poller.message("news", fields) == .seconds(15))
        #expect(try poller.answer(204, after: .seconds(20)) == .nothing)
        #expect(poller.wait == .zero)
        for _ in 0..<4 { #expect(try poller.message("news", fields) == .zero) }
        #expect(try poller.message("news", fields) == .seconds(15))
    }

    /// Other answers do not count as repeats, and do not end them.
    @Test func emptyAnswersAndFailuresDoNotAffectRepeats() throws {
        var poller = try Poller { try $0.setCursor(.none) }
        for _ in 0...4 { #expect(try poller.message("same") == .zero) }
        for status in [200, 204, 304, 408] {
            #expect(try poller.answer(status) == .nothing)
            #expect(poller.wait == .seconds(15))
        }
        #expect(
            try poller.answer(503)
                == .failed(.httpStatus, retryIn: .milliseconds(500), isFatal: false))
        #expect(try poller.message("same") == .seconds(15))
    }

    /// A backlog is read without pauses, but a server cannot exceed the ceiling.
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
