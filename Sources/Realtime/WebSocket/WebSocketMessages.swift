internal import CShims
internal import Engine
internal import Session
public import Wire

extension WebSocket {
    /// Whether a message is compressed, if permessage-deflate was negotiated.
    public enum Compression: Sendable {
        /// Compressed if it has at least `Options.compressionMinBytes`.
        case automatic
        case always
        /// Not compressed: for data that is already compressed, or that mixes a secret with an
        /// attacker's text (RFC 7692 §8).
        case never

        var choice: CompressionChoice {
            switch self {
            case .automatic: .automatic
            case .always: .always
            case .never: .never
            }
        }
    }

    /// A piece of a message. Text is cut between characters.
    public struct Piece: Sendable, Hashable {
        public let kind: MessageKind
        public let bytes: [UInt8]
        /// Whether this is the first piece of a message.
        public let isFirst: Bool
        /// Whether this is the last piece of a message.
        public let isLast: Bool
    }

    /// The messages of a WebSocket.
    public struct Messages: AsyncSequence, Sendable {
        public typealias Element = Message

        let socket: WebSocket

        public func makeAsyncIterator() -> Iterator { Iterator(socket) }

        public struct Iterator: AsyncIteratorProtocol {
            private let socket: WebSocket
            private let box: Mailbox<Message>?
            private let reader: MailboxReader<Message>?

            init(_ socket: WebSocket) {
                self.socket = socket
                box = socket.mailbox
                reader = box.map { MailboxReader($0) }
            }

            /// Waits for the next message, on the caller's actor; nil at the end.
            @inlinable
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws -> Message? {
                // In the caller's loop: no call of an async function for a message that is there.
                if let message = takeNow() { return message }
                return try await wait()
            }

            public mutating func next() async throws -> Message? {
                try await next(isolation: #isolation)
            }

            @usableFromInline func takeNow() -> Message? { socket.takeNow(box) }

            @usableFromInline func wait() async throws -> Message? {
                try await socket.next(of: box, reader)
            }
        }
    }

    /// The pieces of a WebSocket's messages.
    public struct Pieces: AsyncSequence, Sendable {
        public typealias Element = Piece

        let socket: WebSocket

        public func makeAsyncIterator() -> Iterator { Iterator(socket) }

        public struct Iterator: AsyncIteratorProtocol {
            private let socket: WebSocket
            private let box: Mailbox<Piece>?
            private let reader: MailboxReader<Piece>?

            init(_ socket: WebSocket) {
                self.socket = socket
                box = socket.pieceBox
                reader = box.map { MailboxReader($0) }
            }

            /// Waits for the next piece, on the caller's actor; nil at the end.
            @inlinable
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws -> Piece? {
                // In the caller's loop: no call of an async function for a piece that is there.
                if let piece = takeNow() { return piece }
                return try await wait()
            }

            public mutating func next() async throws -> Piece? {
                try await next(isolation: #isolation)
            }

            @usableFromInline func takeNow() -> Piece? { socket.takeNow(box) }

            @usableFromInline func wait() async throws -> Piece? {
                try await socket.next(of: box, reader)
            }
        }
    }

    /// Sends a message in pieces, for data that is too large for memory or not yet complete.
    ///
    ///     try await socket.sendMessage(.binary) { message in
    ///         for try await chunk in file { try await message.write(chunk) }
    ///     }
    ///
    /// Until it returns, no other message can be sent. If `body` throws, the message cannot be
    /// completed, and the connection is closed with code 1011.
    /// - Throws: the error of `body`; `RealtimeError(.state)` while another message is sent in
    ///   pieces, `.invalidUTF8` for text that ends inside a character.
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

        /// Sends a piece of bytes; in a text message it may end inside a character. Waits while
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

    /// The statistics of a connection since its start, up to the loop's last turn.
    public struct Statistics: Sendable, Hashable {
        public var messagesSent, messagesReceived: UInt64
        /// Sent: before compression. Received: after decompression.
        public var payloadBytesSent, payloadBytesReceived: UInt64
        /// Bytes of frames with headers. Received: including the handshake's response.
        public var wireBytesSent, wireBytesReceived: UInt64
        public var pingsSent, pongsReceived: UInt64
        /// How often it was opened; the number of reconnections is one less.
        public var connections: UInt64
        /// The last ping's round-trip time; nil before the first pong.
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
    /// The statistics of a loop since its creation, up to its last turn.
    public struct Statistics: Sendable, Hashable {
        /// The loop's turns, ready descriptors, and jobs run.
        public var turns, events, jobs: UInt64
        /// WebSockets opened, including reconnections.
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
    typealias Store = PackedMessages

    init(_ kind: MessageKind, _ bytes: UnsafeRawBufferPointer) {
        switch kind {
        // The text is already valid UTF-8, so decoding changes nothing.
        case .text: self = .text(String(decoding: bytes, as: UTF8.self))
        case .binary: self = .binary(Array(bytes))
        }
    }
}

extension WebSocket.Piece: MailboxElement {
    var count: Int { bytes.count }
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
