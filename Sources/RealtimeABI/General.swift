import Engine
import Wire

// Chapter: general. Version, results, error text, log.

/// The result of a call: 0 is success, every failure is negative, and no number is ever reused.
/// Receivers treat a number they do not know as a failure. Since 0.1.
public typealias rt_status = Int32

/// Values of `rt_status`. Since 0.1.
public enum RT_STATUS: Int32 {
    /// The call did what it says.
    case OK = 0
    /// NULL where a value is needed, or an option outside its documented range.
    case ERROR_INVALID_ARGUMENT = -1
    /// The object is in the wrong state: an option set after start, a send before open, a second
    /// start.
    case ERROR_STATE = -2
    /// Called from inside a callback of the same loop, where waiting would never end.
    case ERROR_REENTRANT = -3
    /// The object was made before a fork; the child process cannot use it.
    case ERROR_FORKED = -4
    /// Another thread is running this loop.
    case ERROR_BUSY = -5
    /// The operating system refused: out of descriptors, out of threads. The text names the call
    /// and errno.
    case ERROR_SYSTEM = -6
    /// The URL cannot be parsed.
    case ERROR_INVALID_URL = -7
    /// The URL's scheme is not one this object speaks.
    case ERROR_UNSUPPORTED_SCHEME = -8
    /// A header name is not a token, or a value holds CR, LF or NUL, or the library sets this
    /// header itself.
    case ERROR_INVALID_HEADER = -9
    /// A subprotocol is not a token, or was offered twice.
    case ERROR_INVALID_SUBPROTOCOL = -10
    /// Text that is not valid UTF-8.
    case ERROR_INVALID_UTF8 = -11
    /// A close code that must not be sent: not 1000–1003, 1007–1014 or 3000–4999.
    case ERROR_INVALID_CLOSE_CODE = -12
    /// A close reason of more than 123 bytes.
    case ERROR_CLOSE_REASON_TOO_LONG = -13
    /// The connection is closing or closed.
    case ERROR_CLOSED = -14
    /// The send buffer is at its limit; wait for the drained callback.
    case ERROR_BUFFER_FULL = -15
    /// A message, payload or header is larger than its limit allows.
    case ERROR_TOO_LARGE = -16
    /// The work was cancelled before it ended.
    case ERROR_CANCELLED = -17
    /// Nothing has this id (any more).
    case ERROR_NOT_FOUND = -18
    /// The host name could not be resolved.
    case ERROR_RESOLVE = -30
    /// No connection could be made to the host or the Unix socket: refused, unreachable.
    case ERROR_CONNECT = -31
    /// TLS failed: the certificate, its name or the handshake.
    case ERROR_TLS = -32
    /// The proxy cannot be reached, refused or failed; the text names it.
    case ERROR_PROXY = -33
    /// Something took longer than its time limit.
    case ERROR_TIMEOUT = -34
    /// The server's answer is no valid WebSocket handshake.
    case ERROR_HANDSHAKE = -35
    /// The server answered the handshake with another HTTP status; the text names it.
    case ERROR_HTTP_STATUS = -36
    /// The peer broke the protocol, WebSocket's or HTTP's; the text, and a WebSocket's close code,
    /// say how.
    case ERROR_PROTOCOL = -37
    /// The connection broke: without a closing handshake, or before the answer was whole.
    case ERROR_CONNECTION_LOST = -38
    /// The server's redirect cannot be followed: no or a bad Location, or too many.
    case ERROR_REDIRECT = -39
    /// The server redirects from a place with TLS to one without.
    case ERROR_INSECURE_REDIRECT = -40
    /// The answer is of another media type than the one that was asked for.
    case ERROR_CONTENT_TYPE = -41
    /// The server answered 204, which tells an event source to stop.
    case ERROR_NO_CONTENT = -42
    /// Too many attempts in a row did not become stable.
    case ERROR_RECONNECTS_EXHAUSTED = -43
    /// The server answered 410: what was polled is not there any more.
    case ERROR_GONE = -44
    /// The time for all attempts of a request together is over.
    case ERROR_DEADLINE = -45
    /// The queue of requests that wait for the network is full.
    case ERROR_QUEUE_FULL = -46
    /// A request waited too long for the network.
    case ERROR_EXPIRED = -47
    /// The credentials were refused, and no fresh ones were to be had.
    case ERROR_AUTH = -48
    /// A file of the library's own cannot be read or written.
    case ERROR_STORE = -49
}

/// How much the log says. Since 0.1.
public typealias rt_log_level = Int32

/// Values of `rt_log_level`. Since 0.1.
public enum RT_LOG: Int32 {
    /// Nothing. The default.
    case OFF = 0
    /// Failures the library could not report any other way.
    case ERROR = 1
    /// What probably needs a look.
    case WARNING = 2
    /// Connections opened, closed, retried.
    case INFO = 3
    /// Every step, without payloads and credentials.
    case DEBUG = 4
}

/// Releases user data. Called exactly once for each `user` handed over, after the last call that
/// could receive it; also when the function it was handed to fails. Runs on the thread that made
/// the last reference go: the loop's thread, or the caller's. Since 0.1.
public typealias rt_destroy_fn = @convention(c) (_ user: UnsafeMutableRawPointer?) -> Void

/// Receives one log line, NUL-terminated UTF-8 without a line end, valid until it returns. May be
/// called on any thread that uses the library, several at a time. Since 0.1.
public typealias rt_log_fn =
    @convention(c) (
        _ level: rt_log_level, _ message: UnsafePointer<CChar>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// The library's version as text, for example "0.1.0". Static; never freed. Any thread. Since 0.1.
@_cdecl("rt_version")
public func rt_version() -> UnsafePointer<CChar> { StaticText.version }

/// The library's version as one number, major * 10000 + minor * 100 + patch. Any thread. Since 0.1.
@_cdecl("rt_version_number")
public func rt_version_number() -> UInt32 { LibraryVersion.number }

/// The name of a status, for example "RT_ERROR_CLOSED"; "RT_ERROR_UNKNOWN" for a number this
/// version does not know. Static; never freed. Any thread. Since 0.1.
@_cdecl("rt_status_name")
public func rt_status_name(_ status: rt_status) -> UnsafePointer<CChar> {
    StaticText.name(of: status)
}

/// What went wrong in the last failed call on this thread: a sentence that names the culprit. ""
/// when no call has failed. Control characters are spelt as escapes such as `\u{1b}`, here as in
/// all messages and log lines of the library: a server may have chosen them. Valid until the next
/// failing call on this thread. Any thread. Since 0.1.
@_cdecl("rt_last_error")
public func rt_last_error() -> UnsafePointer<CChar> { LastError.text }

/// Sends log lines up to `level` to `fn`; NULL turns the log off. One log a process, off by
/// default: the library never writes to stdout or stderr by itself, and never logs payloads or
/// credentials. RT_LOG_INFO tells what was opened, answered, lost and closed, each retry with its
/// cause and delay, and which way a Spreadbot connection tries; RT_LOG_DEBUG tells each step. Any
/// thread; a line that another thread had begun may still reach the old `fn`, whose `destroy` tells
/// when the last has ended. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for an unknown level.
@_cdecl("rt_set_log")
public func rt_set_log(
    _ level: rt_log_level, _ fn: rt_log_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return border { () throws(RealtimeError) in try setLog(level: level, box) }
}
