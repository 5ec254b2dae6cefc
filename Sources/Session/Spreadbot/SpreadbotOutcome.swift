package import Wire

/// The end of a leg, as its driver saw it.
package struct SpreadbotLegEnd: Sendable {
    package let error: RealtimeError
    /// The status of the response; 0 if there is none.
    package let status: Int
    /// From the peer's close frame, or from ours after the peer violated the protocol.
    package let closeCode: CloseCode?
    /// Whether a connection to the server was made.
    package let reachedServer: Bool

    package init(
        error: RealtimeError, status: Int = 0, closeCode: CloseCode? = nil,
        reachedServer: Bool = false
    ) {
        self.error = error
        self.status = status
        self.closeCode = closeCode
        self.reachedServer = reachedServer
    }

    /// The same without the credentials that the server quotes.
    package func redacted(by secrets: SentSecrets) -> SpreadbotLegEnd {
        SpreadbotLegEnd(
            error: secrets.redacted(error), status: status, closeCode: closeCode,
            reachedServer: reachedServer)
    }
}

/// The consequence of a leg's end (docs/spreadbot.md, B9).
enum SpreadbotOutcome: Equatable {
    /// This transport does not work here: use the next one at once.
    case unsupported
    /// Another transport to the same host would not help: try the same one again, counted.
    case unreachable
    /// Refresh the tokens, then use the same transport again at once, not counted.
    case unauthorized
    /// The server refuses connections: end.
    case refused
    /// The leg was open: use the same transport again, counted.
    case dropped

    /// Close codes that show that a WebSocket does not work on this route (RFC 6455 §7.4.1).
    private static let unfitCodes: [UInt16] = [1002, 1003, 1007, 1009, 1010]

    /// - Parameters:
    ///   - wasOpen: the leg was open before.
    ///   - isLast: no other transport follows.
    ///   - goesElsewhere: its URL has another host or port than the base URL.
    init(
        _ end: SpreadbotLegEnd, of transport: SpreadbotTransport, wasOpen: Bool, isLast: Bool,
        goesElsewhere: Bool
    ) {
        if let code = end.closeCode?.rawValue {
            switch code {
            case 3000, 4401: self = .unauthorized
            case 1008, 3003, 4403: self = .refused
            case _ where SpreadbotOutcome.unfitCodes.contains(code): self = .unsupported
            default: self = wasOpen ? .dropped : .unsupported
            }
            return
        }
        // If a proxy refuses a tunnel for this transport, it will refuse it again.
        if end.error.proxyRefusal != 0 {
            self = wasOpen ? .dropped : .unsupported
            return
        }
        switch end.status {
        // An open leg ends because its connection ends, whatever its status was.
        case 101 where wasOpen, 200 where wasOpen && end.error.code != .contentType:
            self.init(end.error, of: transport, wasOpen, end.reachedServer, goesElsewhere)
        case 401, 407: self = .unauthorized
        case 403 where isLast, 404 where isLast: self = .refused
        case _ where TemporaryStatus.all.contains(end.status): self = .unreachable
        case 1...: self = .unsupported
        default:
            self.init(end.error, of: transport, wasOpen, end.reachedServer, goesElsewhere)
        }
        if self == .unreachable, wasOpen { self = .dropped }
    }

    /// Without a response.
    private init(
        _ error: RealtimeError, of transport: SpreadbotTransport, _ wasOpen: Bool,
        _ reachedServer: Bool, _ goesElsewhere: Bool
    ) {
        switch error.code {
        case .redirect, .insecureRedirect, .contentType, .noContent, .tooLarge, .invalidHeader,
            .invalidURL, .unsupportedScheme, .invalidArgument:
            self = .unsupported
        case .protocolViolation where !wasOpen, .handshake where !wasOpen: self = .unsupported
        case .protocolViolation where transport == .webSocket: self = .unsupported
        case .connect where goesElsewhere && !wasOpen: self = .unsupported
        default:
            // What blocks a handshake, or delays a stream, may let polls pass.
            let isBlocked =
                switch transport {
                case .webSocket: reachedServer
                case .sse: reachedServer && error.code == .timeout
                case .poll: false
                }
            self = wasOpen ? .dropped : isBlocked ? .unsupported : .unreachable
        }
    }
}
