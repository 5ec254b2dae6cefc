import Realtime
import Testing

/// Nobody listens there: each attempt fails at once.
private let nobody = "http://127.0.0.1:1/"

private var twoAttempts: Backoff {
    var backoff = Backoff()
    backoff.initialDelay = .milliseconds(1)
    backoff.jitter = .none
    backoff.maxAttempts = 1
    return backoff
}

@Suite(.timeLimit(.minutes(5))) struct BackoffTests {
    @Test func anEventSourceEndsAfterTheLastAttempt() async throws {
        var options = EventSource.Options()
        options.backoff = twoAttempts
        let source = try EventSource(nobody, options: options)
        let error = await #expect(throws: RealtimeError.self) {
            for try await _ in source {}
        }
        #expect(error?.code == .reconnectsExhausted)
        #expect(error?.message.contains("reconnects in a row (maxAttempts)") == true)
    }

    @Test func aLongPollEndsAfterTheLastAttempt() async throws {
        var options = LongPoll.Options()
        options.backoff = twoAttempts
        let poll = try LongPoll(nobody, options: options)
        let error = await #expect(throws: RealtimeError.self) {
            for try await _ in poll {}
        }
        #expect(error?.code == .reconnectsExhausted)
    }

    @Test func itIsChecked() {
        var options = EventSource.Options()
        options.backoff = twoAttempts
        options.backoff?.factor = 0
        #expect(throws: RealtimeError.self) { try EventSource(nobody, options: options) }
    }
}
