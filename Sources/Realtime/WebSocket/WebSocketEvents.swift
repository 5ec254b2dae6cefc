import Synchronization
import Wire

extension WebSocket {
    /// The events of a connection, for the tasks that await them. The loop's thread adds events;
    /// continuations are resumed outside the lock.
    final class Events: Sendable {
        private typealias Waiters<Value> = [UInt64: CheckedContinuation<Value, any Error>]

        private struct Contents {
            var opened: Opened?
            var isOpen = false
            var failure: RealtimeError?
            var closing: Closing?
            /// The messages have ended, too.
            var isOver = false
            // The waiting tasks by ticket, so that a cancelled one can be removed.
            var opening: Waiters<Void> = [:]
            var draining: Waiters<Void> = [:]
            var ponging: Waiters<Duration> = [:]
            var ending: Waiters<Closing> = [:]
            /// Tickets of waits that were cancelled before they began.
            var cancelled: Set<UInt64> = []
            var lastTicket: UInt64 = 0
        }

        private let contents = Mutex(Contents())

        var opened: Opened? { contents.withLock { $0.opened } }
        var closing: Closing? { contents.withLock { $0.closing } }

        // MARK: From the loop

        func open(_ opened: Opened) {
            let waiting = contents.withLock { contents in
                contents.opened = opened
                contents.isOpen = true
                contents.failure = nil
                return Events.take(&contents.opening)
            }
            for waiter in waiting { waiter.resume() }
        }

        func drained() {
            let waiting = contents.withLock { Events.take(&$0.draining) }
            for waiter in waiting { waiter.resume() }
        }

        /// Another attempt follows; everything that waited for this connection ends with it.
        func lost(_ closing: Closing) {
            let (ponging, draining, error) = contents.withLock { contents in
                let error: any Error = contents.failure ?? closing
                return (
                    Events.take(&contents.ponging), Events.take(&contents.draining), error
                )
            }
            for waiter in ponging { waiter.resume(throwing: error) }
            for waiter in draining { waiter.resume() }
        }

        func failed(_ error: RealtimeError) { contents.withLock { $0.failure = error } }

        /// The last event: ends the messages, and resumes all waiting tasks.
        /// - Parameters:
        ///   - isAskedFor: this side began to close, so the end is normal whatever its code.
        ///   - finish: ends the messages. First, because a task that learns of the end may then
        ///     ask for messages, and must not wait for any.
        func closed(_ closing: Closing, isAskedFor: Bool, _ finish: (MailboxEnd) -> Void) {
            let failure = contents.withLock { contents in
                contents.closing = closing
                return contents.failure
            }
            let isNormal = [.normal, .goingAway, .noStatus].contains(closing.code)
            finish(
                failure.map { .failed($0) } ?? (isNormal || isAskedFor ? .normal : .failed(closing))
            )
            let all = contents.withLock { contents -> Contents in
                contents.isOver = true
                defer {
                    contents.opening = [:]
                    contents.draining = [:]
                    contents.ponging = [:]
                    contents.ending = [:]
                }
                return contents
            }
            let error: any Error = failure ?? closing
            for waiter in all.opening.values { waiter.resume(throwing: error) }
            for waiter in all.draining.values { waiter.resume() }
            for waiter in all.ponging.values { waiter.resume(throwing: error) }
            for waiter in all.ending.values { waiter.resume(returning: closing) }
        }

        private static func take<Value>(
            _ waiters: inout Waiters<Value>
        ) -> [CheckedContinuation<Value, any Error>] {
            defer { waiters = [:] }
            return Array(waiters.values)
        }

        // MARK: For tasks; each throws `CancellationError` when its task is cancelled

        func waitUntilOpen() async throws {
            try await wait(\.opening) { contents in
                if contents.isOpen { return .success(()) }
                return contents.closing.map { .failure(contents.failure ?? $0) }
            }
        }

        /// - Parameter isFull: called again under the lock.
        /// - Parameter owe: called after it, so that a drained event will come. The call that
        ///   filled the buffer may not have requested one, because bytes count twice while the loop
        ///   accepts them.
        func untilDrained(_ isFull: () -> Bool, owe: () -> Void) async throws {
            try await wait(
                \.draining, nil,
                { contents in contents.closing == nil && isFull() ? nil : .success(()) },
                begin: owe)
        }

        /// - Parameter send: sends a ping, and calls its argument with the round-trip time.
        func pong(
            _ send: (_ answered: @escaping @Sendable (Duration) -> Void) throws -> Void
        ) async throws -> Duration {
            let ticket = newTicket()
            return try await wait(
                \.ponging, ticket,
                { contents in contents.closing.map { .failure(contents.failure ?? $0) } },
                begin: {
                    try send { [self] roundTrip in
                        let waiter = contents.withLock {
                            $0.ponging.removeValue(forKey: ticket)
                        }
                        waiter?.resume(returning: roundTrip)
                    }
                })
        }

        func untilClosed() async throws -> Closing {
            try await wait(\.ending) { contents in
                contents.isOver ? contents.closing.map { .success($0) } : nil
            }
        }

        private func newTicket() -> UInt64 {
            contents.withLock { contents in
                contents.lastTicket += 1
                return contents.lastTicket
            }
        }

        /// - Parameter look: returns the result if it is already known, under the lock; nil to
        ///   wait.
        /// - Parameter begin: starts the operation; its error is thrown.
        private func wait<Value: Sendable>(
            _ waiters: any WritableKeyPath<Contents, Waiters<Value>> & Sendable,
            _ ticket: UInt64? = nil,
            _ look: (Contents) -> Result<Value, any Error>?, begin: () throws -> Void = {}
        ) async throws -> Value {
            let ticket = ticket ?? newTicket()
            defer { contents.withLock { _ = $0.cancelled.remove(ticket) } }
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    let known = contents.withLock { contents -> Result<Value, any Error>? in
                        if contents.cancelled.contains(ticket) {
                            return .failure(CancellationError())
                        }
                        if let known = look(contents) { return known }
                        contents[keyPath: waiters][ticket] = continuation
                        return nil
                    }
                    if let known { return continuation.resume(with: known) }
                    do { try begin() } catch { fail(waiters, ticket, error) }
                }
            } onCancel: {
                fail(waiters, ticket, CancellationError())
            }
        }

        /// Ends one wait, unless it has ended. A cancellation can also end a wait that has not
        /// begun.
        private func fail<Value>(
            _ waiters: WritableKeyPath<Contents, Waiters<Value>>, _ ticket: UInt64,
            _ error: any Error
        ) {
            let waiter = contents.withLock { contents in
                let waiter = contents[keyPath: waiters].removeValue(forKey: ticket)
                if waiter == nil { contents.cancelled.insert(ticket) }
                return waiter
            }
            waiter?.resume(throwing: error)
        }
    }
}
