public import CShims
import Engine
import Session
import Wire

// Chapter: views. Structs that callbacks of several objects receive. The struct, and everything
// that it points to, is valid until the callback returns. Text is never NULL, and a NUL follows its
// last byte. Later versions add fields at the end, which `struct_bytes` of an older library does
// not include.

/// The state of a connection object: a WebSocket, an event source, a long poll, a Spreadbot or
/// Pusher connection, or a Meteor client. Since 0.1.
public typealias rt_state = Int32

/// Values of `rt_state`. Since 0.1.
public enum RT_STATE: Int32 {
    /// Not started.
    case IDLE = 0
    /// An attempt is being made: lookup, connection, TLS, handshake, and the server's confirmation
    /// where the protocol has one.
    case CONNECTING = 1
    /// The server has accepted the connection or the request. A long poll stays open between two
    /// polls that succeed.
    case OPEN = 2
    /// The connection was lost, or the attempt failed. The next attempt waits for its time, or for
    /// a network.
    case WAITING = 3
    /// The closing handshake is in progress.
    case CLOSING = 4
    /// Ended by `_close` or a fatal error; no attempt follows. Spreadbot, Pusher and Meteor can be
    /// started again, unless a Meteor client has failed.
    case CLOSED = 5
}

/// The connection is open: the server responded as it should. Since 0.1.
public typealias rt_opened_fn =
    @convention(c) (_ opened: UnsafePointer<rt_opened>?, _ user: UnsafeMutableRawPointer?) -> Void

/// Receives a failure. The function that sets the callback says which failures are reported. Since
/// 0.1.
public typealias rt_failure_fn =
    @convention(c) (_ failure: UnsafePointer<rt_failure>?, _ user: UnsafeMutableRawPointer?) -> Void

/// The connection has ended. Since 0.1.
public typealias rt_closed_fn =
    @convention(c) (_ closed: UnsafePointer<rt_closed>?, _ user: UnsafeMutableRawPointer?) -> Void

/// Receives a message. Since 0.1.
public typealias rt_event_fn =
    @convention(c) (_ event: UnsafePointer<rt_event>?, _ user: UnsafeMutableRawPointer?) -> Void

/// Called before an attempt; `attempt` is its number since the last stable connection, from 1. It
/// may change the options that can be set before start, such as the URL or the headers with a fresh
/// token, but not those that take effect only once. Returning false closes the object. If the
/// decision or the token takes time, call the object's `_defer_attempt` and return true. Since 0.1.
public typealias rt_attempt_fn =
    @convention(c) (_ attempt: UInt32, _ user: UnsafeMutableRawPointer?) -> Bool

/// What a callback returns when the server requires credentials. Since 0.1.
public typealias rt_credentials = Int32

/// Values of `rt_credentials`. Since 0.1.
public enum RT_CREDENTIALS: Int32 {
    /// No credentials: the object fails with a fatal RT_ERROR_HTTP_STATUS.
    case NONE = 0
    /// The headers now contain them: the request is sent again at once.
    case READY = 1
    /// They are being fetched: the object waits for its `_credentials_ready`.
    case LATER = 2
}

/// The server responded with 401, to a WebSocket's handshake also with 403, or the proxy with 407
/// (`rt_network_set_proxy`); `refusal` describes the response. The callback may change the headers,
/// as before start. It is called once per attempt: a second refusal is fatal. Since 0.1.
public typealias rt_credentials_fn =
    @convention(c) (
        _ refusal: UnsafePointer<rt_failure>?, _ user: UnsafeMutableRawPointer?
    ) -> rt_credentials
