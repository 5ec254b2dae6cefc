/// What a read of a connected byte stream says.
enum StreamRead {
    /// So many bytes; `isDrained` when nothing more can wait behind them.
    case bytes(Int, isDrained: Bool)
    case wouldBlock
    /// The peer ended the stream.
    case end
    /// Broken; `isTLS` when the TLS library found fault, or was told of one by an alert.
    case failed(String, isTLS: Bool, systemError: Int32)
}

/// What a write says.
enum StreamWrite {
    case bytes(Int)
    case wouldBlock
    /// The peer no longer reads; what it sent before can still be read.
    case failed
}
