package import Wire

/// How a leg ended, as its driver saw it.
package struct SpreadbotLegEnd: Sendable {
    package let error: RealtimeError
    /// The server's, 0 without an answer.
    package let status: Int
    /// Of a close frame, the peer's or the one that answered its breach of the protocol.
    package let closeCode: CloseCode?
    /// A connection to the server stood.
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
}

/// What follows from it (docs/spreadbot.md, B9).
enum SpreadbotOutcome: Equatable {
    /// This leg does not work here: the next one at once.
    case unsupported
    /// Another leg to the same host would not help: the same one again, counted.
    case unreachable
    /// Fresh tokens, then the same leg again at once, not counted.
    case unauthorized
    /// The server wants no connection: the end.
    case refused
    /// It was connected: the same leg again, counted.
    case dropped

    /// Answers of a server, or of what stands before it, that may soon be others.
    private static let passingStatuses = [408, 425, 429, 500, 502, 503, 504]

    /// Close codes that say that a WebSocket does not work on this way (RFC 6455 §7.4.1).
    private static let unfitCodes: [UInt16] = [1002, 1003, 1007, 1009, 1010]

    /// - Parameters:
    ///   - wasOpen: it was connected before.
    ///   - isLast: no other leg follows.
    ///   - goesElsewhere: its URL names another host or port than the base.
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
        // A proxy that opens no tunnel for this one does not open it at the next attempt either.
        if end.error.proxyRefusal != 0 {
            self = wasOpen ? .dropped : .unsupported
            return
        }
        switch end.status {
        // What was open ends by its connection, whatever its status was.
        case 101 where wasOpen, 200 where wasOpen && end.error.code != .contentType:
            self.init(end.error, of: transport, wasOpen, end.reachedServer, goesElsewhere)
        case 401, 407: self = .unauthorized
        case 403 where isLast, 404 where isLast: self = .refused
        case _ where SpreadbotOutcome.passingStatuses.contains(end.status): self = .unreachable
        case 1...: self = .unsupported
        default:
            self.init(end.error, of: transport, wasOpen, end.reachedServer, goesElsewhere)
        }
        if self == .unreachable, wasOpen { self = .dropped }
    }

    /// Without an answer.
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
            // What stands in the way of a handshake, or holds a stream back, lets polls pass.
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
