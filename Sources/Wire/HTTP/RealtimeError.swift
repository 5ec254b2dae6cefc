/// The one error type of the library: a code for programs and a sentence for people. The C ABI
/// turns it into `rt_status` and `rt_last_error()`.
public struct RealtimeError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kinds of failure. Their numbers are those of the C ABI's `rt_status`; no number is ever
    /// reused.
    public enum Code: Int32, Sendable, CaseIterable {
        case invalidArgument = -1
        case state = -2
        case reentrant = -3
        case forked = -4
        case busy = -5
        case system = -6
        case invalidURL = -7
        case unsupportedScheme = -8
        case invalidHeader = -9
        case invalidSubprotocol = -10
        case invalidUTF8 = -11
        case invalidCloseCode = -12
        case closeReasonTooLong = -13
        case closed = -14
        case bufferFull = -15
        case tooLarge = -16
        case cancelled = -17
        case notFound = -18
        case resolve = -30
        case connect = -31
        case tls = -32
        case proxy = -33
        case timeout = -34
        case handshake = -35
        case httpStatus = -36
        case protocolViolation = -37
        case connectionLost = -38
        case redirect = -39
        case insecureRedirect = -40
        case contentType = -41
        case noContent = -42
        case reconnectsExhausted = -43
        case gone = -44
        case deadline = -45
        case queueFull = -46
        case expired = -47
        case auth = -48
        case store = -49
        case method = -50
    }

    public let code: Code
    /// The operating system's error, an `errno`; 0 if there is none.
    public let systemError: Int32
    /// A sentence that names the cause (host, option, header, limit). It contains no credential
    /// that the object was given and has sent, even if the server quotes it: each, from 6 bytes on,
    /// is shown as `…`. Control characters, which a server may have chosen, are written as escapes
    /// such as `\u{1b}`.
    public let message: String

    /// The response that the server sent instead, with the beginning of its body. With `.proxy`,
    /// the proxy's response to CONNECT.
    public let response: HTTPResponse?

    public init(
        _ code: Code, _ message: String, response: HTTPResponse? = nil, systemError: Int32 = 0
    ) {
        self.code = code
        self.message = message.withoutControls
        self.response = response
        self.systemError = systemError
    }

    public var description: String { "\(message) (\(code))" }

    /// With `.proxy`, the status with which the proxy refused a tunnel; nil if it did not respond.
    public var proxyStatus: Int? { code == .proxy ? response?.status : nil }

    /// Like `proxyStatus`, but 0 instead of nil, and for a 407, which asks for credentials.
    package var proxyRefusal: Int {
        guard let proxyStatus, proxyStatus != 407 else { return 0 }
        return proxyStatus
    }
}
