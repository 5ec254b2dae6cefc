public import CShims
import Engine
import Session
import Wire

// Chapter: views. What callbacks of several objects receive: one struct, whose fields are valid,
// with all that they point to, until the callback returns. Text is never NULL, and has a NUL behind
// its length. Later versions add fields at the end, which `struct_bytes` of an older library does
// not include.

/// It is open: the server answers as it should. Since 0.1.
public typealias rt_opened_fn =
    @convention(c) (_ opened: UnsafePointer<rt_opened>?, _ user: UnsafeMutableRawPointer?) -> Void

/// Something failed. Each object's setter says what. Since 0.1.
public typealias rt_failure_fn =
    @convention(c) (_ failure: UnsafePointer<rt_failure>?, _ user: UnsafeMutableRawPointer?) -> Void

/// A connection is over. Since 0.1.
public typealias rt_closed_fn =
    @convention(c) (_ closed: UnsafePointer<rt_closed>?, _ user: UnsafeMutableRawPointer?) -> Void

/// A message has come. Since 0.1.
public typealias rt_event_fn =
    @convention(c) (_ event: UnsafePointer<rt_event>?, _ user: UnsafeMutableRawPointer?) -> Void

/// An attempt begins; `attempt` is its number since the last connection that was stable, from 1.
/// Here, as before start, options may be changed: headers with a fresh token, the URL; not those
/// that are taken once. Returning false closes the object. Since 0.1.
public typealias rt_attempt_fn =
    @convention(c) (_ attempt: UInt32, _ user: UnsafeMutableRawPointer?) -> Bool

/// What a callback answers when the server wants credentials. Since 0.1.
public typealias rt_credentials = Int32

/// Values of `rt_credentials`. Since 0.1.
public enum RT_CREDENTIALS: Int32 {
    /// There are none: a fatal RT_ERROR_HTTP_STATUS.
    case NONE = 0
    /// They are in the headers now: the request goes out once more, at once.
    case READY = 1
    /// They are being fetched: the object waits for its `_credentials_ready`.
    case LATER = 2
}

/// The server answered 401, or the proxy 407 (`rt_network_set_proxy`): `refusal` has the answer.
/// Here, as before start, headers may be changed. Asked once an attempt: a second refusal is fatal.
/// Since 0.1.
public typealias rt_credentials_fn =
    @convention(c) (
        _ refusal: UnsafePointer<rt_failure>?, _ user: UnsafeMutableRawPointer?
    ) -> rt_credentials
