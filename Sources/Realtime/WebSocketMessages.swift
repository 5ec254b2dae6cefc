internal import CShims
internal import Engine
internal import Session
public import Wire

extension WebSocket {
    /// Whether one message is compressed, where permessage-deflate was agreed.
    public enum Compression: Sendable {
        /// From `Options.compressionMinBytes` on.
        case automatic
        case always
        /// For what is compressed already, or holds a secret beside text of an attacker's (RFC 7692
        /// §8).
        case never

        var choice: CompressionChoice {
            switch self {
            case .automatic: .automatic
            case .always: .always
            case .never: .never
            }
        }
    }

    /// A piece of a message, as it came. Text is cut between characters.
    public struct Piece: Sendable, Hashable {
        public let kind: MessageKind
        public let bytes: [UInt8]
        /// It begins a message.
        public let isFirst: Bool
        /// It ends a message.
        public let isLast: Bool
    }

    /// The messages of a WebSocket.
    public struct Messages: AsyncSequence, Sendable {
        public typealias Element = Message

        let socket: WebSocket

        public func makeAsyncIterator() -> Iterator { Iterator(socket: socket) }

        public struct Iterator: AsyncIteratorProtocol {
            let socket: WebSocket

            public mutating func next() async throws -> Message? { try await socket.receive() }
        }
    }

    /// The pieces of a WebSocket's messages.
    public struct Pieces: AsyncSequence, Sendable {
        public typealias Element = Piece

        let socket: WebSocket

        public func makeAsyncIterator() -> Iterator { Iterator(socket: socket) }

        public struct Iterator: AsyncIteratorProtocol {
            let socket: WebSocket

            public mutating func next() async throws -> Piece? {
                try await socket.receivePiece()
            }
        }
    }

    /// Sends a message in pieces, for what is larger than memory should hold or not known whole.
    ///
    ///     try await socket.sendMessage(.binary) { message in
    ///         for try await chunk in file { try await message.write(chunk) }
    ///     }
    ///
    /// Until it has returned no other message can be sent. When `body` throws, the message cannot
    /// be completed, and the connection is closed with 1011.
    /// - Throws: what `body` throws; `RealtimeError(.state)` while another is sent in pieces,
    ///   `.invalidUTF8` for text that ends inside a character.
    public func sendMessage(
        _ kind: MessageKind, compression: Compression = .automatic,
        _ body: (MessageWriter) async throws -> Void
    ) async throws {
        try connection.beginMessage(kind, compression: compression.choice)
        do {
            try await body(MessageWriter(socket: self))
            try connection.endMessage()
        } catch {
            try? connection.close(
                code: CloseCode.internalError.rawValue, reason: "message given up")
            throw error
        }
        try await waitUntilDrained()
    }

    /// Writes the pieces of one message.
    public struct MessageWriter: Sendable {
        let socket: WebSocket

        /// Sends a piece of bytes; of a text message it may end inside a character. Waits while
        /// more than `sendHighWaterBytes` are unsent.
        public func write(_ bytes: [UInt8]) async throws {
            try socket.connection.continueMessage(bytes.span.bytes)
            try await socket.waitUntilDrained()
        }

        /// Sends a piece of text.
        public func write(_ text: String) async throws {
            try socket.connection.continueMessage(text.utf8Span.span.bytes)
            try await socket.waitUntilDrained()
        }
    }

    /// What went through a connection since it was started, up to the loop's last turn.
    public struct Statistics: Sendable, Hashable {
        public var messagesSent, messagesReceived: UInt64
        /// Before compression, after decompression.
        public var payloadBytesSent, payloadBytesReceived: UInt64
        /// Frames and their headers; received, the handshake's answer among them.
        public var wireBytesSent, wireBytesReceived: UInt64
        public var pingsSent, pongsReceived: UInt64
        /// How often it was opened; reconnections are one fewer.
        public var connections: UInt64
        /// The last; nil before the first.
        public var roundTrip: Duration?
    }

    public var statistics: Statistics {
        let numbers = connection.statistics
        return Statistics(
            messagesSent: numbers.messages_sent, messagesReceived: numbers.messages_received,
            payloadBytesSent: numbers.payload_bytes_sent,
            payloadBytesReceived: numbers.payload_bytes_received,
            wireBytesSent: numbers.wire_bytes_sent, wireBytesReceived: numbers.wire_bytes_received,
            pingsSent: numbers.pings_sent, pongsReceived: numbers.pongs_received,
            connections: numbers.connections, roundTrip: roundTrip)
    }
}

extension Loop {
    /// What went through a loop since it was made, up to its last turn.
    public struct Statistics: Sendable, Hashable {
        /// Waits that ended, descriptors that were ready, jobs run.
        public var turns, events, jobs: UInt64
        /// WebSockets opened, reconnections among them.
        public var connections: UInt64
        public var messagesSent, messagesReceived: UInt64
        public var payloadBytesSent, payloadBytesReceived: UInt64
        public var wireBytesSent, wireBytesReceived: UInt64
    }

    public var statistics: Statistics {
        let numbers = engine.statistics
        return Statistics(
            turns: numbers.turns, events: numbers.events, jobs: numbers.jobs,
            connections: numbers.connections, messagesSent: numbers.messages_sent,
            messagesReceived: numbers.messages_received,
            payloadBytesSent: numbers.payload_bytes_sent,
            payloadBytesReceived: numbers.payload_bytes_received,
            wireBytesSent: numbers.wire_bytes_sent, wireBytesReceived: numbers.wire_bytes_received
        )
    }
}

extension WebSocket.Message: MailboxElement {
    static var taken: Self { .binary([]) }

    init(_ kind: MessageKind, _ bytes: UnsafeRawBufferPointer) {
        switch kind {
        // Valid UTF-8 already: decoding repairs nothing.
        case .text: self = .text(String(decoding: bytes, as: UTF8.self))
        case .binary: self = .binary(Array(bytes))
        }
    }
}

extension WebSocket.Piece: MailboxElement {
    var count: Int { bytes.count }

    static var taken: Self { Self(kind: .binary, bytes: [], isFirst: false, isLast: false) }
}

extension WebSocketConnection {
    func send(
        _ kind: MessageKind, utf8 text: String, _ compression: WebSocket.Compression
    ) throws(RealtimeError) {
        try send(kind, text.utf8Span.span.bytes, compression)
    }

    func send(
        _ kind: MessageKind, _ bytes: RawSpan, _ compression: WebSocket.Compression
    ) throws(RealtimeError) {
        try WebSocketConnection.borrow(bytes) { bytes throws(RealtimeError) in
            try self.send(kind, bytes, compression: compression.choice)
        }
    }

    func continueMessage(_ bytes: RawSpan) throws(RealtimeError) {
        try WebSocketConnection.borrow(bytes) { bytes throws(RealtimeError) in
            try self.continueMessage(bytes)
        }
    }

    private static func borrow(
        _ bytes: RawSpan, _ body: (UnsafeRawBufferPointer) throws(RealtimeError) -> Void
    ) throws(RealtimeError) {
        var failure: RealtimeError?
        bytes.withUnsafeBytes { bytes in
            do throws(RealtimeError) { try body(bytes) } catch { failure = error }
        }
        if let failure { throw failure }
    }
}
