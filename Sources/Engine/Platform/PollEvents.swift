import CShims

/// The bits of the events that epoll watches and reports.
enum PollEvents {
    static let readable = UInt32(SHIM_EPOLL_IN)
    static let writable = UInt32(SHIM_EPOLL_OUT)
    /// One report, and no more until the descriptor is modified.
    static let once = UInt32(SHIM_EPOLL_ONCE)
    /// The peer sends no more.
    static let peerEnded = UInt32(SHIM_EPOLL_PEER_ENDED)
    /// The socket failed, or both sides closed it. epoll always reports these.
    static let broken = UInt32(SHIM_EPOLL_ERROR) | UInt32(SHIM_EPOLL_HANG_UP)
}
