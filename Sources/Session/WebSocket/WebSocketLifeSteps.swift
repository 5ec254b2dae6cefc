package import Wire

// The stages of a life, and what its calls return.
extension WebSocketLife {
    package enum Stage {
        /// Not started, or between two attempts.
        case idle
        case connecting
        case handshaking
        /// The server refused, and the body of its response is read.
        case refused
        /// The server requires credentials, which the caller fetches.
        case authorizing
        case open
        /// Until the next attempt is due, or until there is a network.
        case waiting
        /// The connection is gone, and its end is not reported yet.
        case over
        case ended
    }

    /// How a connection ended.
    package struct Ending: Equatable, Sendable {
        package var code: CloseCode
        package var reason: String
        package var isClean: Bool
        /// The code is from a close frame of the peer.
        package var isFromPeer = false

        package init(code: CloseCode, reason: String = "", isClean: Bool = false) {
            (self.code, self.reason, self.isClean) = (code, reason, isClean)
        }

        /// The end of a connection without a close frame (RFC 6455 §7.1.5).
        package static let abnormal = Ending(code: .abnormal)
    }

    package enum Answer {
        /// More bytes are needed.
        case incomplete
        /// The connection is open. The bytes after the first `used` are frames.
        case open(ClientHandshake.Outcome, ResponseHead, used: Int)
        /// Drop the connection, and connect to the new `url`.
        case redirected(status: Int)
        case failed(RealtimeError)
    }

    package enum Loss {
        case nothing
        /// Report this, then call `finish` with `.abnormal`.
        case failed(RealtimeError)
        /// Call `finish` with this.
        case ended(Ending)
    }

    package enum OnClose {
        case nothing
        /// Drop the connection; the end is reported in a later turn.
        case drop
        /// Do the session's closing handshake.
        case handshake
    }

    package enum Next {
        /// The end was reported before.
        case nothing
        /// Another attempt with this number follows after the delay. Without a delay, it follows
        /// when there is a network again.
        case wait(Duration?, attempt: Int)
        /// The life is over. Report this now.
        case end
    }

    package enum OnTime {
        case nothing
        /// No connection was made within this limit; libcurl may know why.
        case connectTimedOut(limit: String)
        case failed(RealtimeError)
        /// Call the session's `timeReached`.
        case session
        /// Ask the user whether to make this attempt, then call `endWait`.
        case attempt(Int)
        /// The attempt waits for a network: call `noteWait`.
        case waitForNetwork
    }
}
