package import Session
package import Wire

/// One message, valid while its handler runs. The data and each text are followed by a NUL that is
/// not counted in their length.
package struct LongPollMessage {
    /// UTF-8; kept from an earlier message if this one has none; may be empty.
    package let id: UnsafeRawBufferPointer
    /// Whether this message itself had an id. In a batch only the last one has.
    package let hadID: Bool
    /// UTF-8; empty if the server sent none.
    package let contentType: UnsafeRawBufferPointer
    package let data: UnsafeRawBufferPointer
}

/// The handlers of a long poll. They are called on its loop's thread, one at a time.
///
/// Unchecked because handlers may be set on any thread and are called on the loop's. Callers of the
/// C interface must ensure that theirs allow that; those of Swift are Sendable.
package struct LongPollHandlers: HTTPSourceHandlers, @unchecked Sendable {
    /// The server has answered a poll or held it for its time: for the first time, or after a
    /// failure.
    package var open: ((Opened) -> Void)?
    package var message: ((LongPollMessage) -> Void)?
    package var error: ((HTTPSourceFailure) -> Void)?
    /// Called with each failure, before `error`.
    package var failed: ((HTTPSourceFailure) -> Void)?
    /// A poll begins; 1 is the first one, also after a failure. Options may be changed; returning
    /// false closes.
    package var request: ((Int) throws(RealtimeError) -> Bool)?
    package var credentials: ((HTTPResponse) throws(RealtimeError) -> CredentialsAnswer)?

    package var takeMessages: Bool { message != nil }

    package init() {}
}
