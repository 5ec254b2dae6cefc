import Synchronization
import Wire

extension WebSocket {
    /// What happens to a connection, for the tasks that await it. The loop's thread puts things in;
    /// continuations are resumed outside the lock.
    final class Events: Sendable {
        private struct Contents {
            var agreement = Agreement()
            var isOpen = false
            var isCancelled = false
            var failure: RealtimeError?
            var closing: Closing?
            var opening: CheckedContinuation<Void, any Error>?
            var draining: [CheckedContinuation<Void, Never>] = []
            var ponging: [CheckedContinuation<Duration, any Error>] = []
            var closingWaiters: [CheckedContinuation<Closing, Never>] = []
        }

        private let contents = Mutex(Contents())

        var agreement: Agreement { contents.withLock { $0.agreement } }
        var closing: Closing? { contents.withLock { $0.closing } }

        // MARK: From the loop

        func open(_ agreement: Agreement) {
            let waiter = contents.withLock { contents in
                contents.agreement = agreement
                contents.isOpen = true
                return contents.opening.take()
            }
            waiter?.resume()
        }

        func drained() {
            let waiting = contents.withLock { contents in
                defer { contents.draining = [] }
                return contents.draining
            }
            for waiter in waiting { waiter.resume() }
        }

        func pong(_ roundTrip: Duration) {
            let waiting = contents.withLock { contents in
                defer { contents.ponging = [] }
                return contents.ponging
            }
            for waiter in waiting { waiter.resume(returning: roundTrip) }
        }

        func failed(_ error: RealtimeError) { contents.withLock { $0.failure = error } }

        /// The last event: everyone who waits is told. How the messages end follows from it.
        func closed(_ closing: Closing) -> MailboxEnd {
            let all = contents.withLock { contents -> Contents in
                contents.closing = closing
                defer {
                    contents.opening = nil
                    contents.draining = []
                    contents.ponging = []
                    contents.closingWaiters = []
                }
                return contents
            }
            let error: any Error = all.failure ?? closing
            all.opening?.resume(throwing: error)
            for waiter in all.draining { waiter.resume() }
            for waiter in all.ponging { waiter.resume(throwing: error) }
            for waiter in all.closingWaiters { waiter.resume(returning: closing) }
            if let failure = all.failure { return .failed(failure) }
            let isNormal = [.normal, .goingAway, .noStatus].contains(closing.code)
            return isNormal ? .normal : .failed(closing)
        }

        // MARK: For tasks

        func opened() async throws {
            try await withCheckedThrowingContinuation {
                (continuation: CheckedContinuation<Void, any Error>) in
                let result = contents.withLock { contents -> Result<Void, any Error>? in
                    if contents.isCancelled { return .failure(CancellationError()) }
                    if contents.isOpen { return .success(()) }
                    if let closing = contents.closing {
                        return .failure(contents.failure ?? closing)
                    }
                    contents.opening = continuation
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        }

        func cancelOpening() {
            let waiter = contents.withLock { contents in
                contents.isCancelled = true
                return contents.opening.take()
            }
            waiter?.resume(throwing: CancellationError())
        }

        /// - Parameter isFull: asked again under the lock, so that no drained event is missed.
        func untilDrained(_ isFull: () -> Bool) async {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                let waits = contents.withLock { contents in
                    guard contents.closing == nil, isFull() else { return false }
                    contents.draining.append(continuation)
                    return true
                }
                if !waits { continuation.resume() }
            }
        }

        func nextPong(_ send: () throws -> Void) async throws -> Duration {
            try await withCheckedThrowingContinuation {
                (continuation: CheckedContinuation<Duration, any Error>) in
                let end = contents.withLock { contents -> (any Error)? in
                    if let closing = contents.closing { return contents.failure ?? closing }
                    contents.ponging.append(continuation)
                    return nil
                }
                if let end { return continuation.resume(throwing: end) }
                do {
                    try send()
                } catch {
                    // Every waiting ping shares the connection's fate.
                    let waiting = contents.withLock { contents in
                        defer { contents.ponging = [] }
                        return contents.ponging
                    }
                    for waiter in waiting { waiter.resume(throwing: error) }
                }
            }
        }

        func untilClosed() async -> Closing {
            await withCheckedContinuation { (continuation: CheckedContinuation<Closing, Never>) in
                let closing = contents.withLock { contents -> Closing? in
                    if contents.closing == nil { contents.closingWaiters.append(continuation) }
                    return contents.closing
                }
                if let closing { continuation.resume(returning: closing) }
            }
        }
    }
}
