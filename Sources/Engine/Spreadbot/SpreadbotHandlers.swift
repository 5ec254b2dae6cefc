package import Session
package import Wire

/// One message, valid while its handler runs; id and event are UTF-8 with a NUL behind them,
/// outside their length.
package struct SpreadbotMessage {
    /// The session's cursor behind this message; maybe empty.
    package let id: UnsafeRawBufferPointer
    /// Whether this very message had an id.
    package let hadID: Bool
    /// The path, when the server named none.
    package let event: UnsafeRawBufferPointer
    package let data: UnsafeRawBufferPointer
}

/// How a send ended.
package struct SpreadbotSent {
    package let number: UInt64
    /// nil when the server has it.
    package let error: RealtimeError?
    /// Of a request, when it came to an answer.
    package let result: RESTResult?
}

/// What a Spreadbot connection calls, on its loop's thread, one at a time.
///
/// Unchecked because handlers may be set on any thread and are called on the loop's: callers of the
/// C interface promise that theirs bear it, Swift's are Sendable.
package struct SpreadbotHandlers: EndpointHandlers, @unchecked Sendable {
    /// It is connected; resumed behind the last id, or from wherever the server begins.
    package var open: ((_ transport: SpreadbotTransport, _ resumed: Bool, Opened) -> Void)?
    /// Another leg is in use; nil when none is any more.
    package var transport: ((SpreadbotTransport?) -> Void)?
    package var message: ((SpreadbotMessage) -> Void)?
    package var error: ((SpreadbotSession.Failure) -> Void)?
    /// The tokens were refreshed.
    package var tokens: ((_ access: String, _ refresh: String) -> Void)?
    package var sent: ((SpreadbotSent) -> Void)?
    /// It is over: by an error that was told, or nil for the application's own wish.
    package var disconnected: ((RealtimeError?) -> Void)?

    package var takeMessages: Bool { message != nil }

    package init() {}
}
