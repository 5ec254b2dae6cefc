import Engine
import Wire

// Chapter: general. Version, results, error text, log.

/// The result of a call: 0 is success, and every failure is negative. Numbers are never reused.
/// Treat a number that you do not know as a failure. Since 0.1.
public typealias rt_status = Int32

/// Values of `rt_status`. Since 0.1.
public enum RT_STATUS: Int32 {
    /// Success.
    case OK = 0
    /// A required argument is NULL, or a value is outside its documented range.
    case ERROR_INVALID_ARGUMENT = -1
    /// The object is in the wrong state for this call: an option set after start, a send before
    /// open, a second start.
    case ERROR_STATE = -2
    /// Called inside a callback of the same loop, where waiting would never end.
    case ERROR_REENTRANT = -3
    /// The object was created before a fork; the child process cannot use it.
    case ERROR_FORKED = -4
    /// Another thread is running this loop.
    case ERROR_BUSY = -5
    /// The operating system refused, for example because descriptors or threads have run out. The
    /// message names the call and errno.
    case ERROR_SYSTEM = -6
    /// The URL cannot be parsed.
    case ERROR_INVALID_URL = -7
    /// The object does not support the URL's scheme.
    case ERROR_UNSUPPORTED_SCHEME = -8
    /// The header name is not a token, the value contains CR, LF or NUL, or the library sets this
    /// header itself.
    case ERROR_INVALID_HEADER = -9
    /// The subprotocol is not a token, or was offered twice.
    case ERROR_INVALID_SUBPROTOCOL = -10
    /// The text is not valid UTF-8.
    case ERROR_INVALID_UTF8 = -11
    /// The close code must not be sent. Allowed are 1000–1003, 1007–1014 and 3000–4999.
    case ERROR_INVALID_CLOSE_CODE = -12
    /// The close reason is longer than 123 bytes.
    case ERROR_CLOSE_REASON_TOO_LONG = -13
    /// The connection is closing or closed.
    case ERROR_CLOSED = -14
    /// The send buffer is full. Wait for the drained callback.
    case ERROR_BUFFER_FULL = -15
    /// A message, payload or header is larger than its limit allows.
    case ERROR_TOO_LARGE = -16
    /// The operation was cancelled.
    case ERROR_CANCELLED = -17
    /// No object has this id, or it no longer exists.
    case ERROR_NOT_FOUND = -18
    /// The host name could not be resolved.
    case ERROR_RESOLVE = -30
    /// Connecting to the host or the Unix socket failed: refused or unreachable.
    case ERROR_CONNECT = -31
    /// TLS failed: the certificate, its name, or the handshake.
    case ERROR_TLS = -32
    /// The proxy is unreachable, refused the request or failed. The message names it.
    case ERROR_PROXY = -33
    /// A time limit was exceeded.
    case ERROR_TIMEOUT = -34
    /// The server's response is not a valid WebSocket handshake.
    case ERROR_HANDSHAKE = -35
    /// The server responded with an HTTP status that refuses the request. The message names it.
    case ERROR_HTTP_STATUS = -36
    /// The peer violated the WebSocket or HTTP protocol. The message says how, and so does a
    /// WebSocket's close code.
    case ERROR_PROTOCOL = -37
    /// The connection was lost without a closing handshake, or before the response was complete.
    case ERROR_CONNECTION_LOST = -38
    /// The server's redirect cannot be followed: its Location is missing or invalid, or there were
    /// too many redirects.
    case ERROR_REDIRECT = -39
    /// The server redirected from a URL with TLS to one without.
    case ERROR_INSECURE_REDIRECT = -40
    /// The response has a different media type from the one requested.
    case ERROR_CONTENT_TYPE = -41
    /// The server responded with 204, which tells an event source to stop.
    case ERROR_NO_CONTENT = -42
    /// Too many connections in a row failed or did not last.
    case ERROR_RECONNECTS_EXHAUSTED = -43
    /// The server responded with 410: the polled resource no longer exists.
    case ERROR_GONE = -44
    /// The deadline for all attempts of a request has passed.
    case ERROR_DEADLINE = -45
    /// The queue of waiting requests is full.
    case ERROR_QUEUE_FULL = -46
    /// A request waited too long for the network.
    case ERROR_EXPIRED = -47
    /// The server refused the credentials, and there were no fresh ones.
    case ERROR_AUTH = -48
    /// One of the library's files cannot be read or written.
    case ERROR_STORE = -49
    /// A method or a subscription has failed, the stub of a method, or one of its operations.
    case ERROR_METHOD = -50
}

/// How much is logged. Since 0.1.
public typealias rt_log_level = Int32

/// Values of `rt_log_level`. Since 0.1.
public enum RT_LOG: Int32 {
    /// Nothing. The default.
    case OFF = 0
    /// Failures that the library could not report in any other way.
    case ERROR = 1
    /// Conditions that probably need attention.
    case WARNING = 2
    /// Connections that open, close and reconnect.
    case INFO = 3
    /// Every step, without payloads and credentials.
    case DEBUG = 4
}

/// Releases user data. It is called exactly once for each `user` passed with it: after the last
/// call that could receive `user`, or when the function that took it fails. Runs on the thread that
/// releases the last reference: the loop's thread, or the caller's. Since 0.1.
public typealias rt_destroy_fn = @convention(c) (_ user: UnsafeMutableRawPointer?) -> Void

/// Receives one log line: NUL-terminated UTF-8 without a line end, valid until the function
/// returns. Any thread that uses the library may call it, and several may do so at the same time.
/// Since 0.1.
public typealias rt_log_fn =
    @convention(c) (
        _ level: rt_log_level, _ message: UnsafePointer<CChar>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// What a thread of the library does. Since 0.1.
public typealias rt_thread_event = Int32

/// Values of `rt_thread_event`. Since 0.1.
public enum RT_THREAD: Int32 {
    /// It begins: no callback of the program has run on it.
    case BEGIN = 0
    /// It ends: no callback of the program runs on it any more.
    case END = 1
}

/// Receives the beginning and the end of a thread of the library, on this thread. `name` is
/// "realtime-loop" for a loop's own thread, "realtime-lookup" for one that looks up a host, or
/// "realtime-file" for one that writes a file; expect others. It is static. The function may wait,
/// but must not call functions of this library. Since 0.1.
public typealias rt_thread_fn =
    @convention(c) (
        _ event: rt_thread_event, _ name: UnsafePointer<CChar>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// The library's version as text, for example "0.1.0". Static; do not free it. Any thread. Since
/// 0.1.
@_cdecl("rt_version")
public func rt_version() -> UnsafePointer<CChar> { StaticText.version }

/// The library's version as one number, major * 10000 + minor * 100 + patch. Any thread. Since 0.1.
@_cdecl("rt_version_number")
public func rt_version_number() -> UInt32 { LibraryVersion.number }

/// The name of a status, for example "RT_ERROR_CLOSED", or "RT_ERROR_UNKNOWN" for a number that
/// this version does not know. Static; do not free it. Any thread. Since 0.1.
@_cdecl("rt_status_name")
public func rt_status_name(_ status: rt_status) -> UnsafePointer<CChar> {
    StaticText.name(of: status)
}

/// The message of the last failed call on this thread: a sentence that names the cause, or "" if no
/// call has failed. Like all messages and log lines of the library, it shows control characters,
/// which a server may have sent, as escapes such as `\u{1b}`. Valid until the next failing call on
/// this thread. Any thread. Since 0.1.
@_cdecl("rt_last_error")
public func rt_last_error() -> UnsafePointer<CChar> { LastError.text }

/// Returns `status`, and copies its message: the text of `rt_last_error` if `status` is a failure,
/// otherwise "". Put the call that may fail into the arguments:
/// `rt_status_message(rt_loop_dispatch(loop, 0), buffer, sizeof buffer, NULL)`. Both then run on
/// one thread, also in a runtime that may move a task to another thread between two calls of C (Go,
/// GHC). Any thread. Since 0.1.
/// - Parameter status: a status, or the result of a function that returns a negative status on
///   failure.
/// - Parameter buffer: receives the message and a NUL, cut to `size` bytes; may be NULL. A message
///   has at most 1,023 bytes.
/// - Parameter out_length: receives the length of the whole message; may be NULL.
/// - Returns: `status`; this function does not fail.
@_cdecl("rt_status_message")
public func rt_status_message(
    _ status: rt_status, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    LastError.copy(ifFailed: status, to: buffer, size, out_length)
    return status
}

/// Sets the function that is called when a thread of the library begins and when it ends, for
/// runtimes that must attach each thread before it may call them, and detach it (a Java VM); NULL
/// removes it. A process has one such function, and none by default. It may be set at any time, but
/// before the first object is best: it is called in pairs, so a thread that runs already is not
/// reported, and a thread that began with an old `fn` ends with it. `rt_loop_stop_and_wait` returns
/// after the end of the loop's thread was reported. The process may exit before the end of other
/// threads is. Any thread. Since 0.1.
/// - Parameter destroy: may run on a thread whose end was reported.
/// - Returns: RT_OK.
@_cdecl("rt_set_thread_hook")
public func rt_set_thread_hook(
    _ fn: rt_thread_fn?, _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?
) -> rt_status {
    setThreadHook(CallbackBox(fn, user, destroy))
    return RT_STATUS.OK.rawValue
}

/// Sends log lines up to `level` to `fn`; NULL turns the log off. A process has one log, which is
/// off by default. The library never writes to stdout or stderr by itself, and never logs payloads
/// or credentials. RT_LOG_INFO reports connections that open, receive a response, are lost or
/// close, each retry with its cause and delay, and which transport a Spreadbot connection tries.
/// RT_LOG_DEBUG reports each step. Any thread. The old `fn` may still receive a line that another
/// thread is logging; its `destroy` is called after the last one. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for an unknown level.
@_cdecl("rt_set_log")
public func rt_set_log(
    _ level: rt_log_level, _ fn: rt_log_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return border { () throws(RealtimeError) in try setLog(level: level, box) }
}
