/// The result of reading from a connected byte stream.
enum StreamRead {
    /// This many bytes. `isDrained` if no more can be waiting.
    case bytes(Int, isDrained: Bool)
    case wouldBlock
    /// The peer ended the stream.
    case end
    /// The stream failed. `isTLS` if the TLS library reported an error or received an alert.
    case failed(String, isTLS: Bool, systemError: Int32)
}

/// The result of a write.
enum StreamWrite {
    case bytes(Int)
    case wouldBlock
    /// The peer no longer reads; what it sent before can still be read.
    case failed
}
