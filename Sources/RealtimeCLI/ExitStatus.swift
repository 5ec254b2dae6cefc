import ArgumentParser
import Glibc
import Realtime

/// The exit codes, so that scripts can tell failures apart.
enum ExitStatus: Int32, Error, CaseIterable {
    case done = 0
    case other = 1
    case unreachable = 2
    case untrusted = 3
    case refused = 4
    case lost = 5
    case closedWithError = 6
    case usage = 64
    case interrupted = 130
    /// The same code as for a process that SIGPIPE ended.
    case unread = 141

    private var meaning: String {
        switch self {
        case .done: "success, or the peer closed the connection normally"
        case .other: "a failure on this machine, such as a file that cannot be read"
        case .unreachable: "no connection: name, host, port or proxy, or no response in time"
        case .untrusted: "no trusted connection: TLS"
        case .refused: "the server answered with an error or an invalid response"
        case .lost: "the connection was lost, or the peer violated the protocol"
        case .closedWithError: "the peer closed the connection with an error code"
        case .usage: "invalid argument"
        case .interrupted: "Ctrl-C, SIGTERM or SIGHUP"
        case .unread: "the reader of the output is gone (broken pipe)"
        }
    }

    /// For --help.
    static var table: String {
        allCases.map { status in
            let number = String(status.rawValue)
            return String(repeating: " ", count: 5 - number.count) + "\(number)  \(status.meaning)"
        }.joined(separator: "\n")
    }

    init(_ error: RealtimeError) {
        self = error.isFromProxy ? .unreachable : ExitStatus(error.code)
    }

    init(_ failure: DDPError) {
        switch failure.kind {
        case .server: self = .refused
        case .stub: self = .other
        case .invocationFailed, .disconnected, .closed: self = .lost
        case .timeout: self = .unreachable
        }
    }

    private init(_ code: RealtimeError.Code) {
        switch code {
        case .resolve, .connect, .proxy, .timeout, .deadline: self = .unreachable
        case .tls: self = .untrusted
        case .httpStatus, .redirect, .insecureRedirect, .handshake, .contentType, .noContent,
            .gone, .auth:
            self = .refused
        case .connectionLost, .protocolViolation, .tooLarge, .reconnectsExhausted,
            .closed, .expired, .queueFull:
            self = .lost
        case .invalidArgument, .invalidURL, .unsupportedScheme, .invalidHeader,
            .invalidSubprotocol, .invalidUTF8, .invalidCloseCode, .closeReasonTooLong:
            self = .usage
        case .cancelled: self = .interrupted
        case .state, .reentrant, .forked, .busy, .system, .bufferFull, .notFound, .store, .method:
            self = .other
        }
    }
}

extension RealtimeError {
    /// A proxy refused to open a tunnel, or requires credentials.
    var isFromProxy: Bool { response?.proxy != nil }

    static let proxyAdvice = "Give the proxy's credentials: --proxy http://NAME:PASSWORD@HOST:PORT."

    /// What the user can do about the error.
    var advice: String? {
        switch code {
        case _ where isFromProxy && response?.status == 407: RealtimeError.proxyAdvice
        case .resolve: "Check the host name; --resolve HOST:PORT:ADDRESS avoids the lookup."
        case .connect where message.contains(" for the interface "): "See --interface."
        case .connect: "Check host and port, and whether the server is running."
        case .proxy: "Check the proxy's URL and credentials; --proxy none connects without a proxy."
        case .timeout: adviceForTimeout
        case .deadline: "See --max-time."
        case .tls where message.contains("does not speak TLS"): nil
        case .tls where message.contains("setting certificate file"): nil
        case .tls: "To trust your own authority use --ca-file; openssl s_client shows details."
        case .httpStatus where response?.status == 401:
            "Credentials are missing or wrong; see --bearer and --user."
        case .httpStatus where response?.status == 404:
            "The server has nothing at this path."
        case .contentType where message.contains("text/event-stream is expected"):
            "This URL does not serve an event stream; check the path."
        case .contentType where message.contains("an event stream, which does not end"):
            "`realtime sse` prints its events."
        case .insecureRedirect: "The server redirects from TLS to plain text."
        case .auth where message.contains("an auth method, and none is set"):
            "See --auth-endpoint and --secret-file."
        case .auth where message.contains("encryption master key"): "Use --auth-endpoint."
        case .auth where message.contains("authorization"): nil
        case .auth where message.contains("channel") || message.contains("subscription"): nil
        case .auth: "See --token, and --refresh-token with --auth-url."
        case .unsupportedScheme where message.hasPrefix("The proxy"): nil
        case .unsupportedScheme:
            "ws and wss are for `realtime ws` and `realtime ddp`; all others take http and https."
        default: nil
        }
    }

    /// What is said about a time limit that --timeout sets.
    static let slowAdvice =
        "Maybe the server is overloaded, or a firewall drops packets; see --timeout."

    /// The option that sets the limit, if the tool has one.
    private var adviceForTimeout: String? {
        let flag = FlagNames.flag(in: message)
        if let flag, flag != "--timeout" { return "See \(flag)." }
        if message.contains("TLS") { return "See --timeout." }
        return flag != nil || message.contains("cannot connect to ")
            ? RealtimeError.slowAdvice : nil
    }
}
