package import Wire

/// Compresses sent messages (RFC 7692 §7.2.1). zlib's state is allocated with the first message. A
/// class, so that the many connections that do not compress need only a pointer.
package final class MessageCompressor {
    private let level: Int
    private let memoryLevel: Int
    private let agreed: DeflateParameters
    @exclusivity(unchecked) private var deflater: Deflater?
    @exclusivity(unchecked) private var scratch = ByteBuffer()

    /// nil if messages are sent uncompressed: level 0, or a window of 8 bits, which zlib lacks.
    package convenience init?(
        _ configuration: CompressionConfiguration, agreed: DeflateParameters
    ) {
        guard configuration.level > 0, agreed.canCompress else { return nil }
        self.init(configuration, agreed)
    }

    private init(_ configuration: CompressionConfiguration, _ agreed: DeflateParameters) {
        level = configuration.level
        memoryLevel = configuration.memoryLevel
        self.agreed = agreed
    }

    /// The compressed message or piece, valid until the next call. It must be sent even if it is
    /// not smaller, because zlib's window contains it from now on.
    package func compress(
        _ message: UnsafeRawBufferPointer, endsMessage: Bool = true
    ) throws(RealtimeError) -> UnsafeRawBufferPointer {
        if deflater == nil {
            deflater = try Deflater(
                level: level, windowBits: agreed.clientMaxWindowBits, memoryLevel: memoryLevel,
                noContextTakeover: agreed.clientNoContextTakeover)
        }
        try deflater?.deflate(message, endsMessage: endsMessage, into: &scratch)
        return scratch.readable
    }

    /// Call when the compressed bytes have been copied. Frees a large scratch buffer.
    package func didSend() { scratch.removeAll(keeping: 4096) }

    /// Frees zlib's memory if the next message does not need its content.
    package func releaseIdleMemory() { deflater?.releaseIdleMemory() }
}
