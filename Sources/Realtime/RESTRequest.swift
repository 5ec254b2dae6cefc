internal import Engine
internal import Session
import Synchronization
import Wire

extension REST {
    /// One request; what is nil is as in the client's options.
    public struct Request: Sendable {
        public enum Body: Sendable {
            case none
            /// With this Content-Type, unless it is nil.
            case bytes([UInt8], type: String? = nil)
            /// As text/plain in UTF-8.
            case text(String)
            /// Text that is JSON already, as application/json.
            case json(String)
            /// Taken while it is sent: for each attempt `source` makes a function that gives the
            /// next bytes, `capacity` at most, and none at the end. Of this length, or in chunks
            /// when it is nil.
            case source(
                length: Int?,
                source: @Sendable () throws -> (@Sendable (_ capacity: Int) throws -> [UInt8]))
            /// Pieces as they come, taken once: a request that has begun to send them is not tried
            /// again. A second request iterates the sequence anew, which may be over by then. Of
            /// this length together, or in chunks when it is nil.
            case pieces(
                length: Int? = nil, any AsyncSequence<[UInt8], any Error> & Sendable)
        }

        /// A token, in the case it is sent in.
        public var method: String
        /// Below the client's base URL, with exactly one slash between; or a whole URL.
        public var path: String
        public var body: Body
        /// Added behind the path's own, percent-encoded.
        public var query: [(name: String, value: String)]
        /// In the place of the client's of their names. Behind `Expect: 100-continue` the body is
        /// sent when the server asks for it, or has said nothing for a second, and stays here when
        /// it answers 300 or more instead.
        public var headers: [(name: String, value: String)]
        /// For one attempt, from name resolution to the last byte; while a body is sent, or an
        /// answer is streamed, for the time without a byte. `.zero` means no limit. A longer one
        /// than the client's deadline is this request's deadline, too.
        public var attemptTimeout: Duration?
        /// For all attempts and delays, and for a streamed answer, which the client's own does not
        /// limit once it has begun; `.zero` means no limit.
        public var deadline: Duration?
        /// How long it may wait to begin; `.zero` means no limit.
        public var queueTime: Duration?
        public var attempts: Int?
        public var isOrdered: Bool?
        /// Adds an Idempotency-Key, a random UUID that is the same in all attempts.
        public var addsIdempotencyKey: Bool?
        public var retryUnsafe: Bool?
        public var maxRedirects: Int?
        /// Bytes of an answer that is kept whole; 0 means no limit.
        public var maxBodyBytes: Int?
        /// Called on the loop's thread with bytes of bodies; a total is 0 while it is not known.
        public var onProgress:
            (
                @Sendable (
                    _ sent: UInt64, _ toSend: UInt64, _ received: UInt64, _ toReceive: UInt64
                )
                    -> Void
            )?

        public init(
            _ method: String, _ path: String, body: Body = .none,
            query: [(name: String, value: String)] = [],
            headers: [(name: String, value: String)] = []
        ) {
            self.method = method
            self.path = path
            self.body = body
            self.query = query
            self.headers = headers
        }

        func builder(_ client: RESTClient) throws -> RESTRequestBuilder {
            let builder = try RESTRequestBuilder(client, method, path)
            for (name, value) in query { builder.addQuery(name, value) }
            for (name, value) in headers { try builder.addHeader(name, value) }
            try setBody(of: builder)
            try apply(to: &builder.policy)
            if let onProgress {
                builder.handlers.progress = {
                    onProgress($0.sent, $0.toSend, $0.received, $0.toReceive)
                }
            }
            return builder
        }

        private func apply(to policy: inout RESTPolicy) throws {
            if let deadline { policy.setOwnDeadline(deadline) }
            if let attemptTimeout { policy.setOwnAttemptTimeout(attemptTimeout) }
            policy.queueTime = queueTime ?? policy.queueTime
            if let attempts {
                policy.attempts = try OptionCheck.within(1...1000, attempts, "attempts")
            }
            policy.isOrdered = isOrdered ?? policy.isOrdered
            policy.addsIdempotencyKey = addsIdempotencyKey ?? policy.addsIdempotencyKey
            policy.retriesUnsafe = retryUnsafe ?? policy.retriesUnsafe
            if let maxRedirects {
                policy.redirects.maximum = try OptionCheck.within(
                    0...20, maxRedirects, "maxRedirects")
            }
            if let maxBodyBytes {
                policy.bodyLimit = try OptionCheck.within(0...Int.max, maxBodyBytes, "maxBodyBytes")
            }
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
                builder.handlers.assigned = { upload.set(number: $0) }
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
