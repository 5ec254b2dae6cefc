/// Limits on what a peer can make us hold.
package struct MessageLimits: Sendable, Equatable {
    /// The largest message that is received, after decompression. A larger one fails the connection
    /// with close code 1009.
    /// - Option: max_message_bytes, bytes, python max_size = 16 << 20
    package var messageBytes = 64 << 20
    /// The largest response to the opening handshake: status line plus headers.
    /// - Option: max_header_bytes, bytes 1024..., python max_header_size
    package var headerBytes = 64 << 10
    /// How many times its size on the wire a compressed message may grow, checked above 64 KiB. A
    /// message that grows more fails the connection with close code 1009. Deflate can reach 1,032.
    /// - Option: max_inflate_ratio, count 0..., unlimited, parameter ratio, python elsewhere
    ///   Deflate.max_inflate_ratio
    package var inflateRatio = 0

    package init() {}

    func tooLarge(_ owner: OptionOwner) -> ProtocolFailure {
        ProtocolFailure(
            .messageTooBig,
            "message of more than \(messageBytes) bytes\(owner.mention(.maxMessageBytes))")
    }

    func noMemory(for bytes: Int) -> ProtocolFailure {
        ProtocolFailure(
            .messageTooBig,
            "message of \(bytes) bytes or more, for which this process has no memory")
    }

    /// - Parameter count: bytes that are to be appended to the assembled ones.
    func checkMemory(
        of assembly: borrowing ByteBuffer, adding count: Int
    ) throws(ProtocolFailure) {
        guard assembly.hasMemory(for: count) else { throw noMemory(for: assembly.count + count) }
    }

    func grewTooMuch(_ owner: OptionOwner) -> ProtocolFailure {
        ProtocolFailure(
            .messageTooBig,
            "compressed message grew more than \(inflateRatio) times"
                + owner.mention(.maxInflateRatio))
    }
}
