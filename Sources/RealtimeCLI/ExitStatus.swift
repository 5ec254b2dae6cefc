import ArgumentParser
import Glibc
import Realtime

/// How the tool ends, for scripts to decide by.
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
    /// As of a process that SIGPIPE ended.
    case unread = 141

    private var meaning: String {
        switch self {
        case .done: "all is done, or the peer closed in order"
        case .other: "a failure of this machine"
        case .unreachable: "no connection: name, host, port, proxy, or no answer in time"
        case .untrusted: "no connection that can be trusted: TLS"
        case .refused: "the server answered with an error or an invalid response"
        case .lost: "the connection was lost, or the peer broke the protocol"
        case .closedWithError: "the peer closed with a code that is an error"
        case .usage: "invalid argument"
        case .interrupted: "Ctrl-C or SIGTERM, after closing in order"
        case .unread: "nobody reads the output any more"
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
        self = error.isOfProxy ? .unreachable : ExitStatus(error.code)
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
        case .state, .reentrant, .forked, .busy, .system, .bufferFull, .notFound, .store:
            self = .other
        }
    }
}

extension RealtimeError {
    /// A proxy opens no tunnel, or asks for credentials.
    var isOfProxy: Bool { response?.proxy != nil }

    static let proxyAdvice = "Give the proxy's credentials: --proxy http://NAME:PASSWORD@HOST:PORT."

    /// What the one who typed the command may do about it.
    var advice: String? {
        switch code {
        case _ where isOfProxy && response?.status == 407: RealtimeError.proxyAdvice
        case .resolve: "Check the host's name; --resolve HOST:PORT:ADDRESS goes without looking up."
        case .connect: "Check host and port, and whether the server runs."
        case .proxy: "Check the proxy's URL and credentials; --proxy none goes without one."
        case .timeout where message.contains("TLS"): "See --timeout."
        case .timeout where message.contains(" nothing more of "): "See --idle-timeout."
        case .timeout: "The server may be overloaded, or a firewall be silent; see --timeout."
        case .deadline: "See --max-time."
        case .tls where message.contains("does not speak TLS"): nil
        case .tls where message.contains("setting certificate file"): nil
        case .tls: "For an authority of your own use --ca-file; openssl s_client shows more."
        case .httpStatus where response?.status == 401:
            "Credentials are missing or wrong; see --bearer and --user."
        case .httpStatus where response?.status == 404:
            "The server has nothing at this path."
        case .contentType: "This is no event stream; maybe another path is."
        case .insecureRedirect: "The server leads from TLS to plain text."
        case .auth: "See --token, and --refresh-token with --auth-url."
        case .unsupportedScheme where message.hasPrefix("The proxy"): nil
        case .unsupportedScheme: "ws and wss go with `realtime ws`, http and https with the others."
        default: nil
        }
    }
}
