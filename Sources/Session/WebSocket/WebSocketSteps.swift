package import Wire

// What the calls of a session return.
extension WebSocketSession {
    /// The meaning of the next bytes of the input.
    package enum Step: Equatable {
        case needMoreBytes
        /// A message, as a range of the input.
        case message(MessageKind, Range<Int>)
        /// A message, as a range of `assembled`.
        case assembledMessage(MessageKind, Range<Int>)
        /// A piece of a message, as a range of `assembled`; only with `deliversPieces`.
        case piece(MessageKind, Range<Int>, isFirst: Bool, isLast: Bool)
        /// One of our pings was answered after this time, and all pings with lower numbers with it.
        case pong(Duration, number: UInt64)
        /// Nothing that the caller needs to know: call `next` again.
        case nothing
        /// As many bytes were inflated as `allow` granted. Deliver the assembled messages, call
        /// `allow` again in a later turn, then pass the rest of the input.
        case allowanceSpent
        /// The connection ends after assembled messages that were not delivered yet. Deliver them,
        /// call `discardDelivered` and then `next` again. Until then the connection is open, so the
        /// user can answer those messages.
        case deliverFirst
        /// The peer's close frame. Ours is in `outgoing` or was sent before. The server closes the
        /// connection next (RFC 6455 §7.1.1).
        case closed(CloseCode, reason: String)
        /// The peer violated the protocol while the connection was open. A close frame is in
        /// `outgoing`.
        case failed(ProtocolFailure)
    }

    /// The result of `timeReached`.
    package enum OnTime: Equatable {
        case nothing
        /// A ping is in `outgoing`.
        case pinged
        /// No pong or no message came in time. A close frame with this code is in `outgoing`.
        case failed(RealtimeError, CloseCode)
        /// The closing handshake took too long: drop the connection.
        case closeTimedOut
    }

    package enum State: Equatable {
        case open
        /// Our close frame is queued, and the peer's is awaited.
        case closing
        /// The peer's close frame came, or the peer violated the protocol. No more input is read,
        /// and the end of the connection is awaited.
        case finished
    }

    /// Counts of messages, bytes, pings and pongs.
    package struct Counts {
        package var messagesSent, messagesReceived: UInt64
        package var payloadBytesSent, payloadBytesReceived: UInt64
        package var pingsSent, pongsReceived: UInt64
    }
}
