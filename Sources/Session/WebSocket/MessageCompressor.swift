package import Wire

/// Compresses messages sent, RFC 7692 §7.2.1. zlib's state is made at the first message. An object,
/// since most connections have none, and then it shall cost them nothing.
package final class MessageCompressor {
    private let level: Int
    private let memoryLevel: Int
    private let agreed: DeflateParameters
    @exclusivity(unchecked) private var deflater: Deflater?
    @exclusivity(unchecked) private var scratch = ByteBuffer()

    /// Nil when messages go uncompressed: by level 0, or since zlib has no window of 8 bits.
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

    /// The compressed message or piece of one, valid until the next call. It must be sent, even
    /// where it is not smaller: zlib's window holds it from now on.
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

    /// Call when the compressed bytes were copied; a large scratch buffer is given back.
    package func didSend() { scratch.removeAll(keeping: 4096) }

    /// Gives zlib's memory back where no message needs what is in it.
    package func releaseIdleMemory() { deflater?.releaseIdleMemory() }
}
