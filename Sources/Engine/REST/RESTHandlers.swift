package import Session
package import Wire

/// How a request ended: the one terminal callback's argument. Its body is the caller's when the
/// answer was not streamed.
package struct RESTResult: Sendable {
    package var outcome: RESTOutcome
    package var body: RESTBody
    /// 10, 11, 20 or 30; 0 without an answer.
    package var httpVersion: Int
    /// By which connection the answer came, without the answer itself; nil when none came.
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

/// The body of an answer that was kept whole. It takes over the buffer that the body came in: a
/// copy of 64 MiB would take time and twice the memory.
///
/// Unchecked because it never changes.
package final class RESTBody: @unchecked Sendable {
    private let buffer: ByteBuffer
    package static let empty = RESTBody(ByteBuffer())

    init(_ buffer: consuming ByteBuffer) { self.buffer = buffer }

    /// Valid as long as the body.
    package var bytes: UnsafeRawBufferPointer { buffer.readable }
}

/// The head of an answer that is streamed.
package struct RESTHead {
    /// As far as it is known: the answer has no error yet.
    package var outcome: RESTOutcome
    package var head: ResponseHead
    package var httpVersion: Int
    package var connection: Shared<Opened>?
}

/// What a caller's source of a request body says.
package enum RESTBodyStep: Sendable, Equatable {
    /// So many bytes were written to the buffer, 1 at least.
    case bytes(Int)
    case end
    /// There will be more: `RESTClient.resumeBody`.
    case wait
    /// It cannot be had.
    case fail
}

/// How far an exchange has come, in bytes of bodies; the totals are 0 when they are not known.
package struct RESTProgress: Sendable {
    package var sent: UInt64
    package var toSend: UInt64
    package var received: UInt64
    package var toReceive: UInt64
}

/// What a client calls beside its requests' handlers, on the loop's thread.
///
/// Unchecked because it may be set on any thread and is called on the loop's: callers of the C
/// interface promise that theirs bear it, Swift's are Sendable.
package struct RESTClientHandlers: EndpointHandlers, @unchecked Sendable {
    /// Asked for fresh credentials when they were refused, with that answer, which has no body.
    package var credentials: ((HTTPResponse) throws(RealtimeError) -> CredentialsAnswer)?

    package init() {}
}

/// What a request calls, on the loop's thread, one at a time; `done` once, and last.
package struct RESTHandlers {
    /// The request's number, before anything else is called; on the thread that sends it.
    package var assigned: ((UInt64) -> Void)?
    /// The answer begins that is streamed: its body goes to `body`, and not into the result.
    package var head: ((RESTHead) -> Void)?
    /// A piece of the streamed answer, valid until this returns.
    package var body: ((UnsafeRawBufferPointer) -> Void)?
    package var progress: ((RESTProgress) -> Void)?
    /// Writes the next bytes of the request's body to the buffer.
    package var source: ((UnsafeMutableRawBufferPointer) -> RESTBodyStep)?
    /// Has `source` begin anew; false when it cannot.
    package var rewind: (() -> Bool)?
    var sourceLease: RESTSourceLease?
    package var done: ((RESTResult) -> Void)?

    package init() {}
}

/// Held by a request with a source that others may want after it, until it ends.
final class RESTSourceLease: Sendable {}
