package import Session
package import Wire

/// How a request ended: the argument of its terminal callback. The caller owns the body, which is
/// empty if the response was streamed.
package struct RESTResult: Sendable {
    package var outcome: RESTOutcome
    package var body: RESTBody
    /// 10, 11, 20 or 30; 0 without a response.
    package var httpVersion: Int
    /// The connection that the response came by, without the response itself; nil without a
    /// response.
    package var connection: Shared<Opened>?

    package init(
        outcome: RESTOutcome, body: RESTBody, httpVersion: Int, connection: Shared<Opened>? = nil
    ) {
        self.outcome = outcome
        self.body = body
        self.httpVersion = httpVersion
        self.connection = connection
    }
}

/// The body of a response that was kept whole. It takes over the receive buffer, because copying 64
/// MiB would take time and twice the memory.
///
/// Unchecked because it never changes.
package final class RESTBody: @unchecked Sendable {
    private let buffer: ByteBuffer
    package static let empty = RESTBody(ByteBuffer())

    init(_ buffer: consuming ByteBuffer) { self.buffer = buffer }

    /// Calls a function with the bytes, which are valid until it returns.
    package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        // Swift may release an object after its last use, which can be in here.
        withExtendedLifetime(self) { body(buffer.readable) }
    }

    /// A copy of the bytes.
    package var copy: [UInt8] { withBytes { Array($0) } }
}

/// The head of a streamed response.
package struct RESTHead {
    /// The outcome so far: without an error.
    package var outcome: RESTOutcome
    package var head: ResponseHead
    package var httpVersion: Int
    package var connection: Shared<Opened>?
}

/// What the source of a request body returns.
package enum RESTBodyStep: Sendable, Equatable {
    /// This many bytes, at least 1, were written to the buffer.
    case bytes(Int)
    case end
    /// More bytes follow after `RESTClient.resumeBody`.
    case wait
    /// The body cannot be provided.
    case fail
}

/// The progress of an exchange, in bytes of its bodies; totals are 0 while unknown.
package struct RESTProgress: Sendable {
    package var sent: UInt64
    package var toSend: UInt64
    package var received: UInt64
    package var toReceive: UInt64
}

/// An attempt has failed and another follows, or the next one waits for a network.
package struct RESTRetry {
    package var cause: RealtimeError
    /// The time until the next attempt; nil if it waits for a network.
    package var delay: Duration?
    /// The number of that attempt.
    package var attempt: Int
}

/// A client's handlers, besides those of its requests. They are called on the loop's thread.
///
/// Unchecked because handlers may be set on any thread and are called on the loop's. Callers of the
/// C interface must ensure that theirs allow that; those of Swift are Sendable.
package struct RESTClientHandlers: EndpointHandlers, @unchecked Sendable {
    /// Called when credentials were refused, with that response, which has no body.
    package var credentials: ((HTTPResponse) throws(RealtimeError) -> CredentialsAnswer)?

    package init() {}
}

/// A request's handlers. They are called on the loop's thread, one at a time; `done` once, and
/// last.
package struct RESTHandlers {
    /// Called with the request's number before anything else, on the thread that sends it.
    package var assigned: ((UInt64) -> Void)?
    /// A streamed response begins: its body goes to `body`, not into the result.
    package var head: ((RESTHead) -> Void)?
    /// A piece of the streamed response, valid until this returns.
    package var body: ((UnsafeRawBufferPointer) -> Void)?
    package var progress: ((RESTProgress) -> Void)?
    package var retry: ((RESTRetry) -> Void)?
    /// Writes the next bytes of the request's body to the buffer.
    package var source: ((UnsafeMutableRawBufferPointer) -> RESTBodyStep)?
    /// Restarts `source` from the beginning; returns false if it cannot.
    package var rewind: (() -> Bool)?
    var sourceLease: RESTSourceLease?
    /// Whether the library's copies of the response's body are overwritten before they are freed.
    var isSecret = false
    package var done: ((RESTResult) -> Void)?

    package init() {}
}

/// Retained by a request that uses a source until it ends. Then other requests may use the source.
final class RESTSourceLease: Sendable {}
