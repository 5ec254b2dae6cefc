package import Session
package import Wire

/// The handlers of an event source. They are called on its loop's thread, one at a time.
///
/// Unchecked because handlers may be set on any thread and are called on the loop's. Callers of the
/// C interface must ensure that theirs allow that; those of Swift are Sendable.
package struct EventSourceHandlers: HTTPSourceHandlers, @unchecked Sendable {
    /// Receives an event, whose texts are valid until it returns.
    package typealias Event = (StreamEvent) -> Void

    package var open: ((Opened) -> Void)?
    /// Called with events of the type "message", whether it was named or is the default.
    package var message: Event?
    /// Called with every event, after the listeners of its type.
    package var any: Event?
    /// Called with every event, after all other handlers; for tasks that await events.
    package var sink: Event?
    /// The stream set a reconnection time, in milliseconds.
    package var retry: ((Int64) -> Void)?
    package var comment: ((UnsafeRawBufferPointer) -> Void)?
    package var error: ((HTTPSourceFailure) -> Void)?
    /// Called with each failure before `error`. Only `error` makes a failure count as reported.
    package var failed: ((HTTPSourceFailure) -> Void)?
    /// The attempt with this number begins. Options may be changed; returning false closes.
    package var request: ((Int) throws(RealtimeError) -> Bool)?
    package var credentials: ((HTTPResponse) throws(RealtimeError) -> CredentialsAnswer)?
    /// Every handler has been called with an event. Only for sources that store ids when they are
    /// confirmed; not called if the source was closed meanwhile, because then a handler may have
    /// missed the event.
    package var delivered: (() -> Void)?
    /// The last event id has changed. Called after the handlers of its event, or without an event.
    package var idChanged: (() -> Void)?
    /// Store an id under a key; "" means remove it.
    package var storeID: ((_ key: String, _ id: String) -> Void)?

    package var takeMessages: Bool { any != nil || sink != nil }

    package init() {}
}
