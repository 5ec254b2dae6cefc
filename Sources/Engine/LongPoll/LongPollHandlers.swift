package import Session
package import Wire

/// One message, valid while its handler runs; each text and the data have a NUL behind them,
/// outside their length.
package struct LongPollMessage {
    /// UTF-8, sticky; maybe empty.
    package let id: UnsafeRawBufferPointer
    /// Whether this very message had an id: in a batch only the last has.
    package let hadID: Bool
    /// UTF-8; empty when the server did not say.
    package let contentType: UnsafeRawBufferPointer
    package let data: UnsafeRawBufferPointer
}

/// What a long poll calls, on its loop's thread, one at a time.
///
/// Unchecked because handlers may be set on any thread and are called on the loop's: callers of the
/// C interface promise that theirs bear it, Swift's are Sendable.
package struct LongPollHandlers: HTTPSourceHandlers, @unchecked Sendable {
    /// The server answers, or has held a poll for its time: for the first time or again after a
    /// failure.
    package var open: ((Opened) -> Void)?
    package var message: ((LongPollMessage) -> Void)?
    package var error: ((HTTPSourceFailure) -> Void)?
    /// Failures too, before `error`.
    package var failed: ((HTTPSourceFailure) -> Void)?
    /// A poll begins, the first since the last that failed being number 1: options may be changed;
    /// false closes.
    package var request: ((Int) throws(RealtimeError) -> Bool)?
    package var credentials: ((HTTPResponse) throws(RealtimeError) -> CredentialsAnswer)?

    package var takeMessages: Bool { message != nil }

    package init() {}
}
