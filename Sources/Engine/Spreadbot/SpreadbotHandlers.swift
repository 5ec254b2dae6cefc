package import Session
package import Wire

/// One message, valid while its handler runs. `id` and `event` are UTF-8, followed by a NUL that is
/// not counted in their length.
package struct SpreadbotMessage {
    /// The session's cursor after this message; may be empty.
    package let id: UnsafeRawBufferPointer
    /// Whether this message itself had an id.
    package let hadID: Bool
    /// The path, if the server named none.
    package let event: UnsafeRawBufferPointer
    package let data: UnsafeRawBufferPointer
}

/// How a send ended.
package struct SpreadbotSent {
    package let number: UInt64
    /// nil if the server has received it.
    package let error: RealtimeError?
    /// The result of a POST, if there was a response.
    package let result: RESTResult?
}

/// The handlers of a Spreadbot connection. They are called on its loop's thread, one at a time.
///
/// Unchecked because handlers may be set on any thread and are called on the loop's. Callers of the
/// C interface must ensure that theirs allow that; those of Swift are Sendable.
package struct SpreadbotHandlers: EndpointHandlers, @unchecked Sendable {
    /// Connected: `resumed` after the last id, or wherever the server begins.
    package var open: ((_ transport: SpreadbotTransport, _ resumed: Bool, Opened) -> Void)?
    /// Another leg is in use; nil if none is any more.
    package var transport: ((SpreadbotTransport?) -> Void)?
    package var message: ((SpreadbotMessage) -> Void)?
    package var error: ((SpreadbotSession.Failure) -> Void)?
    /// The tokens were refreshed.
    package var tokens: ((_ access: String, _ refresh: String) -> Void)?
    package var sent: ((SpreadbotSent) -> Void)?
    /// Disconnected: because of an error that was reported, or nil if the application requested it.
    package var disconnected: ((RealtimeError?) -> Void)?

    package var takeMessages: Bool { message != nil }

    package init() {}
}
