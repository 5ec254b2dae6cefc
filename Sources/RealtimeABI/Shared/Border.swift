import CShims
import Engine
import Session
import Wire

// The border between C and Swift: checks the arguments from C, and turns errors into statuses and
// texts. Nothing here is exported.

/// Runs a call and turns its error into a status and `rt_last_error()`.
func border(_ body: () throws(RealtimeError) -> Void) -> rt_status {
    borderValue { () throws(RealtimeError) in
        try body()
        return RT_STATUS.OK.rawValue
    }
}

/// Like `border`, for calls that return a number of at least 0.
func borderValue(_ body: () throws(RealtimeError) -> Int32) -> Int32 {
    do throws(RealtimeError) {
        return try body()
    } catch {
        return LastError.set(error)
    }
}

/// The thread's last error text.
enum LastError {
    static var text: UnsafePointer<CChar> { shim_error_get() }

    /// Copies the text, cut to the buffer's size and NUL-terminated; "" after a success.
    static func copy(
        ifFailed status: rt_status, to buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
        _ outLength: UnsafeMutablePointer<Int>?
    ) {
        let message = status < 0 ? text : StaticText.empty
        let length = shim_text_copy(message, buffer, size)
        outLength?.pointee = length
    }

    static func set(_ error: RealtimeError) -> rt_status {
        var message = error.message
        message.withUTF8 { utf8 in
            utf8.withMemoryRebound(to: CChar.self) { shim_error_set($0.baseAddress, $0.count) }
        }
        return error.code.rawValue
    }
}

func required<T>(_ value: T?, _ name: String) throws(RealtimeError) -> T {
    guard let value else { throw RealtimeError(.invalidArgument, "\(name) is NULL") }
    return value
}

func text(_ pointer: UnsafePointer<CChar>?, _ name: String) throws(RealtimeError) -> String {
    let pointer = try required(pointer, name)
    guard let text = String(validatingCString: pointer) else {
        throw RealtimeError(.invalidUTF8, "\(name) is not valid UTF-8")
    }
    return text
}

/// A buffer from C; NULL is allowed if it is empty.
func bytes<T: BitwiseCopyable>(
    _ pointer: UnsafePointer<T>?, _ length: Int, _ name: String
) throws(RealtimeError) -> UnsafeRawBufferPointer {
    // More than any machine has, and low enough that the sum of two lengths cannot overflow.
    guard (0...Int.max / 4).contains(length) else {
        throw RealtimeError(.tooLarge, "the length of \(name) is above SIZE_MAX / 8")
    }
    if length == 0 { return UnsafeRawBufferPointer(start: nil, count: 0) }
    return UnsafeRawBufferPointer(start: try required(pointer, name), count: length)
}

/// - Parameter most: nil means a hundred years.
func milliseconds(
    _ value: Int64, _ name: String, atMost most: Int64? = nil
) throws(RealtimeError) -> Duration {
    let longest = most ?? Duration.longestOption.components.seconds * 1000
    guard value >= 0, value <= longest else {
        let words = most == nil ? " (a hundred years)" : ""
        throw RealtimeError(
            .invalidArgument, "\(name) is \(value), 0 to \(longest)\(words) is expected")
    }
    return .milliseconds(value)
}

/// How long a call may wait; nil for -1, without limit.
func waitLimit(_ timeout: Int64) throws(RealtimeError) -> Duration? {
    guard timeout != -1 else { return nil }
    guard timeout >= 0 else {
        throw RealtimeError(
            .invalidArgument, "timeout_ms is \(timeout), -1 or more is expected")
    }
    return try milliseconds(timeout, "timeout_ms")
}

func real(
    _ value: Double, _ name: String, in range: ClosedRange<Double>
) throws(RealtimeError) -> Double {
    guard range.contains(value) else {
        throw RealtimeError(
            .invalidArgument,
            "\(name) is \(value), \(Int(range.lowerBound)) to \(Int(range.upperBound)) is expected")
    }
    return value
}

func size(_ value: Int, _ name: String, atLeast least: Int = 0) throws(RealtimeError) -> Int {
    guard value >= least else {
        let given = value < 0 ? "above SIZE_MAX / 2" : String(value)
        throw RealtimeError(.invalidArgument, "\(name) is \(given), \(least) or more is expected")
    }
    return value
}

func number(
    _ value: some FixedWidthInteger, _ name: String, in range: ClosedRange<Int>
) throws(RealtimeError) -> Int {
    guard range.contains(Int(value)) else {
        throw RealtimeError(
            .invalidArgument,
            "\(name) is \(value), \(range.lowerBound) to \(range.upperBound) is expected")
    }
    return Int(value)
}

/// An optional text: nil for NULL, while "" is a text.
func optionalText(
    _ pointer: UnsafePointer<CChar>?, _ name: String
) throws(RealtimeError) -> String? {
    guard let pointer else { return nil }
    return try text(pointer, name)
}

/// Basic credentials; nil without a user.
func credentials(
    _ user_name: UnsafePointer<CChar>?, _ password: UnsafePointer<CChar>?
) throws(RealtimeError) -> (user: String, password: String)? {
    guard let user_name else { return nil }
    return (try text(user_name, "user_name"), try text(password, "password"))
}

/// An optional text: nil for NULL and "".
func textOrNone(
    _ pointer: UnsafePointer<CChar>?, _ name: String
) throws(RealtimeError) -> String? {
    guard let pointer else { return nil }
    let text = try text(pointer, name)
    return text.isEmpty ? nil : text
}

/// The path of a file; nil for NULL.
func filePath(
    _ pointer: UnsafePointer<CChar>?, _ name: String, atMost most: Int = .max
) throws(RealtimeError) -> String? {
    guard let pointer else { return nil }
    let path = try text(pointer, name)
    guard !path.isEmpty else {
        throw RealtimeError(.invalidArgument, "\(name) is empty; use NULL for none")
    }
    try FileName.check(path, name)
    guard path.utf8.count <= most else {
        throw RealtimeError(
            .invalidArgument, "\(name) has \(path.utf8.count) bytes, at most \(most) are allowed")
    }
    return path
}

/// The enum value with this number.
func named<Value: RawRepresentable<Int32>>(
    _ value: Int32, _ name: String, _ expected: String
) throws(RealtimeError) -> Value {
    guard let named = Value(rawValue: value) else { throw unexpected(value, name, expected) }
    return named
}

/// Shared by all enums.
private func unexpected(_ value: Int32, _ name: String, _ expected: String) -> RealtimeError {
    RealtimeError(.invalidArgument, "\(name) is \(value), \(expected) is expected")
}

/// Copies a struct to a caller whose version of it may have fewer or more fields.
func copy<Value: BitwiseCopyable>(
    _ value: Value, to out: UnsafeMutablePointer<Value>?, _ size: Int
) throws(RealtimeError) {
    let out = UnsafeMutableRawPointer(try required(out, "out"))
    guard size > 0 else {
        throw RealtimeError(.invalidArgument, "size is \(size), the size of the struct is expected")
    }
    withUnsafeBytes(of: value) { bytes in
        out.copyMemory(from: bytes.baseAddress ?? .ofNothing, byteCount: min(size, bytes.count))
    }
}

/// Copies a text into the caller's buffer, cut to its size and NUL-terminated.
func copy(
    text: String, to buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ outLength: UnsafeMutablePointer<Int>?
) throws(RealtimeError) {
    try copy(text.utf8, to: buffer, size, outLength)
}

/// Like the function above, for bytes that may not be UTF-8.
func copy(
    _ bytes: some Collection<UInt8>, to buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ outLength: UnsafeMutablePointer<Int>?
) throws(RealtimeError) {
    let length = bytes.count
    if size > 0 {
        let buffer = try required(buffer, "buffer")
        for (index, byte) in bytes.prefix(size - 1).enumerated() {
            buffer[index] = CChar(bitPattern: byte)
        }
        buffer[min(length, size - 1)] = 0
    } else if size < 0 {
        throw RealtimeError(.tooLarge, "size is above SIZE_MAX / 2")
    }
    outLength?.pointee = length
}

/// Static texts.
enum StaticText {
    static var version: UnsafePointer<CChar> { pointer(LibraryVersion.text) }
    static var empty: UnsafePointer<CChar> { pointer("") }

    private static func pointer(_ text: StaticString) -> UnsafePointer<CChar> {
        UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
    }

    static func name(of status: rt_status) -> UnsafePointer<CChar> {
        guard let status = RT_STATUS(rawValue: status) else { return pointer("RT_ERROR_UNKNOWN") }
        return pointer(name(status))
    }

    private static func name(_ status: RT_STATUS) -> StaticString {
        switch status {
        case .OK: "RT_OK"
        case .ERROR_INVALID_ARGUMENT: "RT_ERROR_INVALID_ARGUMENT"
        case .ERROR_STATE: "RT_ERROR_STATE"
        case .ERROR_REENTRANT: "RT_ERROR_REENTRANT"
        case .ERROR_FORKED: "RT_ERROR_FORKED"
        case .ERROR_BUSY: "RT_ERROR_BUSY"
        case .ERROR_SYSTEM: "RT_ERROR_SYSTEM"
        case .ERROR_INVALID_URL: "RT_ERROR_INVALID_URL"
        case .ERROR_UNSUPPORTED_SCHEME: "RT_ERROR_UNSUPPORTED_SCHEME"
        case .ERROR_INVALID_HEADER: "RT_ERROR_INVALID_HEADER"
        case .ERROR_INVALID_SUBPROTOCOL: "RT_ERROR_INVALID_SUBPROTOCOL"
        case .ERROR_INVALID_UTF8: "RT_ERROR_INVALID_UTF8"
        case .ERROR_INVALID_CLOSE_CODE: "RT_ERROR_INVALID_CLOSE_CODE"
        case .ERROR_CLOSE_REASON_TOO_LONG: "RT_ERROR_CLOSE_REASON_TOO_LONG"
        case .ERROR_CLOSED: "RT_ERROR_CLOSED"
        case .ERROR_BUFFER_FULL: "RT_ERROR_BUFFER_FULL"
        case .ERROR_TOO_LARGE: "RT_ERROR_TOO_LARGE"
        case .ERROR_CANCELLED: "RT_ERROR_CANCELLED"
        case .ERROR_NOT_FOUND: "RT_ERROR_NOT_FOUND"
        case .ERROR_RESOLVE: "RT_ERROR_RESOLVE"
        case .ERROR_CONNECT: "RT_ERROR_CONNECT"
        case .ERROR_TLS: "RT_ERROR_TLS"
        case .ERROR_PROXY: "RT_ERROR_PROXY"
        case .ERROR_TIMEOUT: "RT_ERROR_TIMEOUT"
        case .ERROR_HANDSHAKE: "RT_ERROR_HANDSHAKE"
        case .ERROR_HTTP_STATUS: "RT_ERROR_HTTP_STATUS"
        case .ERROR_PROTOCOL: "RT_ERROR_PROTOCOL"
        case .ERROR_CONNECTION_LOST: "RT_ERROR_CONNECTION_LOST"
        case .ERROR_REDIRECT: "RT_ERROR_REDIRECT"
        case .ERROR_INSECURE_REDIRECT: "RT_ERROR_INSECURE_REDIRECT"
        case .ERROR_CONTENT_TYPE: "RT_ERROR_CONTENT_TYPE"
        case .ERROR_NO_CONTENT: "RT_ERROR_NO_CONTENT"
        case .ERROR_RECONNECTS_EXHAUSTED: "RT_ERROR_RECONNECTS_EXHAUSTED"
        case .ERROR_GONE: "RT_ERROR_GONE"
        case .ERROR_DEADLINE: "RT_ERROR_DEADLINE"
        case .ERROR_QUEUE_FULL: "RT_ERROR_QUEUE_FULL"
        case .ERROR_EXPIRED: "RT_ERROR_EXPIRED"
        case .ERROR_AUTH: "RT_ERROR_AUTH"
        case .ERROR_STORE: "RT_ERROR_STORE"
        case .ERROR_METHOD: "RT_ERROR_METHOD"
        }
    }
}

/// A header in the format of C's views: "Name: value" and LF, with the value's original bytes.
func headerLine(_ name: String, _ content: FieldText) -> [UInt8] {
    Array("\(name): ".utf8) + content.bytes + [UInt8(ascii: "\n")]
}

/// Bytes as C text.
func characters(_ bytes: UnsafeRawBufferPointer) -> UnsafePointer<CChar> {
    (bytes.baseAddress ?? .ofNothing).assumingMemoryBound(to: CChar.self)
}
