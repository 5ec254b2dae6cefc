internal import Engine
internal import Session
import Synchronization
import Wire

extension REST {
    /// A response whose body is a sequence of pieces, read as it arrives. A slow reader slows the
    /// server down. Releasing the last reference ends the request.
    public final class Stream: AsyncSequence, Sendable {
        public typealias Element = [UInt8]

        /// The head of the response; its body is empty.
        public let response: Response
        fileprivate let mailbox: Mailbox<Piece>
        fileprivate let exchange: Exchange
        /// Retained, because a client ends its requests when its last reference is released.
        private let rest: REST

        fileprivate init(
            _ rest: REST, _ response: Response, _ mailbox: Mailbox<Piece>, _ exchange: Exchange
        ) {
            self.rest = rest
            self.response = response
            self.mailbox = mailbox
            self.exchange = exchange
        }

        deinit { exchange.cancel() }

        public func makeAsyncIterator() -> Iterator { Iterator(stream: self) }

        fileprivate func next() async throws -> [UInt8]? {
            if let piece = mailbox.takeNow(onResume: { exchange.pause(false) }) {
                return piece.bytes
            }
            return try await mailbox.next { exchange.pause(false) }?.bytes
        }

        public struct Iterator: AsyncIteratorProtocol {
            fileprivate let stream: Stream

            /// Waits for the next piece; nil at the end.
            /// - Throws: `Failure` if the response breaks off; `CancellationError`.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws -> [UInt8]? { try await stream.next() }

            /// The same, outside `for await`.
            public mutating func next() async throws -> [UInt8]? { try await stream.next() }
        }
    }

    /// A request whose number is set once it is known.
    fileprivate final class Exchange: Sendable {
        private let client: RESTClient
        private let number = Mutex<UInt64?>(nil)

        init(_ client: RESTClient) { self.client = client }

        func set(_ number: UInt64) { self.number.withLock { $0 = number } }

        func pause(_ isPaused: Bool) {
            if let number = number.withLock({ $0 }) { try? client.pause(number, isPaused) }
        }

        func cancel() {
            if let number = number.withLock({ $0 }) { try? client.cancel(number) }
        }
    }

    struct Piece: MailboxElement {
        var bytes: [UInt8]
        var count: Int { bytes.count }
    }

    /// Sends a request and returns when the head of its response has arrived, whatever the status.
    /// The body may then take as long as bytes arrive: `attemptTimeout` limits the time without a
    /// byte, and only a `deadline` of the request itself limits the whole. Later ordered requests,
    /// such as POSTs, wait until the body of an earlier one has ended (`order`).
    /// - Throws: `RealtimeError` for a request that cannot be sent, `Failure` without a response,
    ///   `CancellationError`.
    public func stream(_ request: Request) async throws -> Stream {
        let client = try client.get()
        let builder = try request.builder(client, queues)
        let mailbox = Mailbox<Piece>(256, 1 << 20, on: client.loop)
        let exchange = Exchange(client)
        builder.handlers.body = { bytes in
            guard mailbox.put(Piece(bytes: Array(bytes))) else { return }
            exchange.pause(true)
            // If the box was emptied meanwhile, `resume` was called before there was a pause.
            if !mailbox.isPaused { exchange.pause(false) }
        }
        do {
            return try await opened(builder, mailbox, exchange)
        } catch {
            throw REST.thrown(error)
        }
    }

    private func opened(
        _ builder: RESTRequestBuilder, _ mailbox: Mailbox<Piece>, _ exchange: Exchange
    ) async throws -> Stream {
        try await withTaskCancellationHandler {
            try Task.checkCancellation()
            return try await withCheckedThrowingContinuation { continuation in
                let head = Mutex<CheckedContinuation<Stream, any Error>?>(continuation)
                builder.handlers.head = { came in
                    let waiting = head.withLock { $0.take() }
                    let response = Response(
                        came.head, came.outcome.url, body: [], attempts: came.outcome.attempts,
                        retryAfter: came.outcome.retryAfter, httpVersion: came.httpVersion,
                        opened: came.connection?.value)
                    waiting?.resume(returning: Stream(self, response, mailbox, exchange))
                }
                builder.handlers.done = { result in
                    let waiting = head.withLock { $0.take() }
                    switch REST.result(result) {
                    case .success: mailbox.finish(.normal)
                    case .failure(let failure) where failure.code == .httpStatus:
                        mailbox.finish(.normal)
                    case .failure(let failure):
                        mailbox.finish(.failed(failure))
                        waiting?.resume(throwing: failure)
                    }
                }
                do {
                    builder.addNumberHandler { exchange.set($0) }
                    try builder.send()
                } catch {
                    builder.handlers.done = nil
                    continuation.resume(throwing: error)
                }
                if Task.isCancelled { exchange.cancel() }
            }
        } onCancel: {
            exchange.cancel()
        }
    }
}
