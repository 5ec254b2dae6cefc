internal import Engine
internal import Session
import Synchronization
import Wire

extension REST {
    /// A request. Properties that are nil use the client's options.
    public struct Request: Sendable {
        public enum Body: Sendable, CustomStringConvertible, CustomReflectable {
            case none
            /// Bytes, with this Content-Type unless it is nil.
            case bytes([UInt8], type: String? = nil)
            /// Text, as text/plain in UTF-8.
            case text(String)
            /// JSON text, as application/json.
            case json(String)
            /// A body read while it is sent. For each attempt, `source` returns a function that
            /// returns the next bytes, at most `capacity`, and none at the end. Without `length` it
            /// is sent in chunks.
            case source(
                length: Int?,
                source: @Sendable () throws -> (@Sendable (_ capacity: Int) throws -> [UInt8]))
            /// A sequence of pieces, which can be read only once: a request that has begun to send
            /// it is not retried. Sending the request again iterates the sequence again, which may
            /// be finished by then. Without the total `length` it is sent in chunks.
            case pieces(
                length: Int? = nil, any AsyncSequence<[UInt8], any Error> & Sendable)

            /// The kind, and the size if it is known.
            public var description: String {
                switch self {
                case .none: "none"
                case .bytes(let bytes, _): "bytes(\(bytes.count))"
                case .text(let text): "text(\(text.utf8.count))"
                case .json(let text): "json(\(text.utf8.count))"
                case .source: "source"
                case .pieces: "pieces"
                }
            }
            public var customMirror: Mirror { Shown.mirror(self) }
        }

        /// A token, sent in the case given.
        public var method: String
        /// Appended to the base URL with exactly one slash between; or an absolute URL.
        public var path: String {
            get { hiddenPath.value ?? "" }
            set { hiddenPath.value = newValue }
        }
        private var hiddenPath: HiddenURL
        public var body: Body
        /// Appended to the path's own query, percent-encoded.
        public var query: [(name: String, value: String)] {
            get { hiddenQuery.value }
            set { hiddenQuery.value = newValue }
        }
        private var hiddenQuery: Hidden<[(name: String, value: String)]>
        /// Headers, which replace the client's of the same names. With `Expect: 100-continue`, the
        /// body is sent once the server asks for it or has been silent for a second, and not at all
        /// if the server responds with 300 or more instead.
        public var headers: [(name: String, value: String)] {
            get { hiddenHeaders.value }
            set { hiddenHeaders.value = newValue }
        }
        private var hiddenHeaders: Hidden<[(name: String, value: String)]>
        /// Called with the bytes of the bodies; a total is 0 if it is not known. It runs as
        /// `onRetry` does; one that is slow gets only the newest.
        public var onProgress:
            (
                @Sendable @isolated(any) (
                    _ sent: UInt64, _ toSend: UInt64, _ received: UInt64, _ toReceive: UInt64
                )
                    -> Void
            )?
        /// Called when an attempt has failed and another follows: with the cause, the delay before
        /// the next attempt, and its number. The cause has the response that refused the last
        /// attempt, if there was one, without its body. Also called once each time that the request
        /// begins to wait for a network; `delay` is then nil. It runs on the main actor, on the
        /// actor to which it is isolated, or where the client's `Options.executor` says, perhaps
        /// after the request's end was reported elsewhere. A closure that uses properties of the
        /// main actor says so: `{ @MainActor cause, delay, attempt in … }`.
        public var onRetry:
            (
                @Sendable @isolated(any) (
                    _ cause: RealtimeError, _ delay: Duration?, _ attempt: Int
                ) -> Void
            )?

        // abigen: the options of RESTPolicy
        /// The time limit of one attempt, from name resolution to the last byte of its response,
        /// including redirects. While the request's body is sent, and while the response is
        /// streamed to the caller, it limits the time without a byte instead: each byte restarts
        /// it. It does not run while the caller pauses the response or has no more of the body yet,
        /// nor before the attempt begins: for example while the request waits for a network. If a
        /// request's own limit is longer than the client's deadline, it is also the request's
        /// deadline. `.zero` means no limit.
        public var attemptTimeout: Duration?
        /// The time limit for opening a connection: name resolution, TCP and TLS. Without it only
        /// `attemptTimeout` applies. `.zero` means no limit.
        public var connectTimeout: Duration?
        /// How many attempts a request has in all; 1 means no retries.
        public var attempts: Int?
        /// The time limit of a request with all its attempts and delays. If the program sets it, it
        /// also counts while there is no network; the default does not, so that requests wait for
        /// the network. No attempt or delay begins that would exceed the deadline: the last result
        /// is reported instead. A streamed response that has begun may take longer, unless the
        /// request has its own deadline. `.zero` means no limit.
        public var deadline: Duration?
        /// The longest Retry-After that is obeyed. A response that asks for a longer one is
        /// reported at once.
        public var maxRetryAfter: Duration?
        /// How long a request may wait before it begins, with or without a network. After that it
        /// ends with `.expired`. `.zero` means no limit.
        public var queueTime: Duration?
        /// Which requests are sent one at a time, each after the terminal callback of the one
        /// before: all but GET and HEAD, all or none.
        public var order: REST.Order?
        /// Whether each request that is unsafe to repeat (POST, PATCH) gets an Idempotency-Key: a
        /// random UUID, the same in all its attempts, which makes it safe to retry. For servers
        /// that support this header.
        public var idempotencyKeys: Bool?
        /// Whether any request is retried after a lost connection, a timeout or a temporary status
        /// (425, 500, 502, 504, 520 to 524, 530), even if the server has already acted on it.
        public var retryUnsafe: Bool?
        /// How many redirects are followed (301, 302, 303, 307 and 308). With 0 a redirect is
        /// reported like any other response. A redirect to another origin carries only these
        /// headers: Accept, Accept-Encoding, Accept-Language, Cache-Control, Content-Type,
        /// Last-Event-ID, User-Agent, and those set as safe.
        public var maxRedirects: Int?
        /// Whether a redirect may lead from https to http, or from wss to ws.
        public var allowInsecureRedirects: Bool?
        /// The largest response that is kept whole, after decompression. A larger one is a
        /// `.tooLarge`. Streamed responses have no such limit. 0 means no limit.
        public var maxBodyBytes: Int?
        // abigen: end

        public init(
            _ method: String, _ path: String, body: Body = .none,
            query: [(name: String, value: String)] = [],
            headers: [(name: String, value: String)] = []
        ) {
            self.method = method
            hiddenPath = HiddenURL(path)
            self.body = body
            hiddenQuery = Hidden(query)
            hiddenHeaders = Hidden(headers)
        }

        /// - Parameter queues: where handlers run.
        func builder(
            _ client: RESTClient, _ queues: HandlerQueues
        ) throws -> RESTRequestBuilder {
            let builder = try RESTRequestBuilder(client, method, path)
            for (name, value) in query { builder.addQuery(name, value) }
            for (name, value) in headers { try builder.addHeader(name, value) }
            try setBody(of: builder)
            try applyPlain(to: &builder.policy)
            if let onProgress = Handler(onProgress) {
                let newest = NewestProgress()
                builder.handlers.progress = { progress in
                    guard newest.put(progress) else { return }
                    _ = queues.run(on: onProgress.isolation) {
                        guard let now = newest.take() else { return }
                        onProgress.call(now.sent, now.toSend, now.received, now.toReceive)
                    }
                }
            }
            if let onRetry = Handler(onRetry) {
                builder.handlers.retry = { retry in
                    let (cause, delay, attempt) = (retry.cause, retry.delay, retry.attempt)
                    _ = queues.run(on: onRetry.isolation) { onRetry.call(cause, delay, attempt) }
                }
            }
            return builder
        }

        /// Changes a builder into this request.
        /// - Throws: `.invalidArgument` for a body that is a stream.
        func apply(to builder: RESTRequestBuilder) throws {
            switch body {
            case .none, .bytes, .text, .json: break
            case .source, .pieces:
                throw RealtimeError(
                    .invalidArgument, "a request for authorization cannot have a stream as body")
            }
            try builder.setTarget(method, path)
            builder.clearHeaders()
            try builder.setBody([], type: nil)
            for (name, value) in query { builder.addQuery(name, value) }
            for (name, value) in headers { try builder.addHeader(name, value) }
            try setBody(of: builder)
        }

        private func setBody(of builder: RESTRequestBuilder) throws {
            switch body {
            case .none: return
            case .bytes(let bytes, let type): try builder.setBody(bytes, type: type)
            case .text(let text):
                try builder.setBody(Array(text.utf8), type: "text/plain; charset=utf-8")
            case .json(let text):
                try builder.setBody(Array(text.utf8), type: "application/json")
            case .pieces(let length, let sequence):
                let upload = Upload(sequence, builder.client)
                builder.setBody(length: length, { upload.next($0) }, rewind: nil)
                builder.addNumberHandler { upload.set(number: $0) }
            case .source(let length, let source):
                let state = Mutex(try source())
                builder.setBody(
                    length: length,
                    { space in
                        let next = state.withLock { $0 }
                        guard let bytes = try? next(space.count), bytes.count <= space.count else {
                            return .fail
                        }
                        if bytes.isEmpty { return .end }
                        space.copyBytes(from: bytes)
                        return .bytes(bytes.count)
                    },
                    rewind: {
                        guard let fresh = try? source() else { return false }
                        state.withLock { $0 = fresh }
                        return true
                    })
            }
        }
    }
}

/// The progress that a handler has yet to receive.
private final class NewestProgress: Sendable {
    private let newest = Mutex<RESTProgress?>(nil)

    /// - Returns: whether the handler must be called for it; otherwise a call waits already.
    func put(_ progress: RESTProgress) -> Bool {
        newest.withLock { newest in
            defer { newest = progress }
            return newest == nil
        }
    }

    func take() -> RESTProgress? {
        newest.withLock { exchange(&$0, with: nil) }
    }
}
