package import Session
package import Wire

/// What an event source calls, on its loop's thread, one at a time.
///
/// Unchecked because handlers may be set on any thread and are called on the loop's: callers of the
/// C interface promise that theirs bear it, Swift's are Sendable.
package struct EventSourceHandlers: HTTPSourceHandlers, @unchecked Sendable {
    /// Called with one event, whose texts are valid until it returns.
    package typealias Event = (StreamEvent) -> Void

    package var open: ((Opened) -> Void)?
    /// Events of the type "message", named or not.
    package var message: Event?
    /// Every event, after those who listen to its type.
    package var any: Event?
    /// Every event too, behind all others: for those who await them.
    package var sink: Event?
    /// The stream gave a reconnection time, in milliseconds.
    package var retry: ((Int64) -> Void)?
    package var comment: ((UnsafeRawBufferPointer) -> Void)?
    package var error: ((HTTPSourceFailure) -> Void)?
    /// Failures too, before `error`, which counts as the one that hears them.
    package var failed: ((HTTPSourceFailure) -> Void)?
    /// An attempt of this number begins: options may be changed; false closes.
    package var request: ((Int) throws(RealtimeError) -> Bool)?
    package var credentials: ((HTTPResponse) throws(RealtimeError) -> CredentialsAnswer)?
    /// The last event id is another one, after the handlers of its event; it may have come without
    /// an event.
    package var idChanged: (() -> Void)?
    /// An id is to be kept under a key; "" takes it away.
    package var storeID: ((_ key: String, _ id: String) -> Void)?

    package var takeMessages: Bool { any != nil || sink != nil }

    package init() {}
}
