package import Wire

/// Turns messages, whole or in pieces, into frames. It compresses them if that was agreed and
/// requested (RFC 7692 §7.2.1).
package struct MessageWriter: ~Copyable {
    /// The next frame of a message that is sent in pieces.
    private struct Streaming {
        var opcode: Opcode
        var isCompressed: Bool
    }

    private var streaming: Streaming?
    private let compressor: MessageCompressor?
    /// The most payload in one frame; `Int.max` for no limit.
    private let frameLimit: Int
    private let minimumCompressed: Int
    private var messageCount: UInt64 = 0
    private var payloadBytes: UInt64 = 0

    package init(_ configuration: WebSocketConfiguration, deflate: DeflateParameters?) {
        frameLimit = configuration.maxFrameBytes == 0 ? Int.max : configuration.maxFrameBytes
        minimumCompressed = configuration.compression.minimumBytes
        compressor = deflate.flatMap {
            MessageCompressor(configuration.compression, agreed: $0)
        }
    }

    package var isStreaming: Bool { streaming != nil }

    /// Frees zlib's memory if the next message does not need its content.
    package func releaseIdleMemory() { compressor?.releaseIdleMemory() }

    /// Returns the messages written since the last call, and their bytes before compression.
    package mutating func takeCounts() -> (messages: UInt64, bytes: UInt64) {
        defer {
            messageCount = 0
            payloadBytes = 0
        }
        return (messageCount, payloadBytes)
    }

    package mutating func send(
        _ kind: MessageKind, _ payload: UnsafeRawBufferPointer, _ choice: CompressionChoice,
        _ keys: MaskKeys, into output: inout ByteBuffer
    ) throws(RealtimeError) {
        guard streaming == nil else {
            throw RealtimeError(.state, "a message is being sent in pieces")
        }
        if compresses(payload.count, choice),
            let compressed = try compressor?.compress(payload)
        {
            writeFrames(kind.opcode, compressed, isCompressed: true, keys, into: &output)
            compressor?.didSend()
        } else {
            writeFrames(kind.opcode, payload, isCompressed: false, keys, into: &output)
        }
        messageCount &+= 1
        payloadBytes &+= UInt64(truncatingIfNeeded: payload.count)
    }

    private func compresses(_ count: Int, _ choice: CompressionChoice) -> Bool {
        switch choice {
        case .automatic: count >= minimumCompressed
        case .always: true
        case .never: false
        }
    }

    package mutating func begin(
        _ kind: MessageKind, _ choice: CompressionChoice
    ) throws(RealtimeError) {
        guard streaming == nil else {
            throw RealtimeError(.state, "a message is being sent in pieces already")
        }
        streaming = Streaming(
            opcode: kind.opcode, isCompressed: choice != .never && compressor != nil)
    }

    package mutating func write(
        _ piece: UnsafeRawBufferPointer, endsMessage: Bool, _ keys: MaskKeys,
        into output: inout ByteBuffer
    ) throws(RealtimeError) {
        guard let current = streaming else {
            throw RealtimeError(.state, "no message is being sent in pieces")
        }
        if piece.isEmpty, !endsMessage { return }
        if current.isCompressed,
            let compressed = try compressor?.compress(piece, endsMessage: endsMessage)
        {
            // Only the first frame has RSV1 (RFC 7692 §6.1).
            writeFrames(
                current.opcode, compressed, isCompressed: current.opcode != .continuation,
                endsMessage: endsMessage, keys, into: &output)
            compressor?.didSend()
        } else {
            writeFrames(
                current.opcode, piece, isCompressed: false, endsMessage: endsMessage, keys,
                into: &output)
        }
        payloadBytes &+= UInt64(truncatingIfNeeded: piece.count)
        if endsMessage {
            streaming = nil
            messageCount &+= 1
        } else {
            streaming?.opcode = .continuation
        }
    }

    private func writeFrames(
        _ opcode: Opcode, _ payload: UnsafeRawBufferPointer, isCompressed: Bool,
        endsMessage: Bool = true, _ keys: MaskKeys, into output: inout ByteBuffer
    ) {
        var start = 0
        repeat {
            let end = start + min(frameLimit, payload.count - start)
            FrameWriter.write(
                start == 0 ? opcode : .continuation, isFinal: endsMessage && end == payload.count,
                isCompressed: isCompressed && start == 0,
                payload: UnsafeRawBufferPointer(rebasing: payload[start..<end]), key: keys.next(),
                into: &output)
            start = end
        } while start < payload.count
    }
}

extension MessageKind {
    fileprivate var opcode: Opcode {
        switch self {
        case .text: .text
        case .binary: .binary
        }
    }
}
