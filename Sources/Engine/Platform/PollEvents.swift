import CShims

/// What epoll watches for and reports: a bit set.
enum PollEvents {
    static let readable = UInt32(SHIM_EPOLL_IN)
    static let writable = UInt32(SHIM_EPOLL_OUT)
    /// Reports once, and then nothing until it is asked again.
    static let once = UInt32(SHIM_EPOLL_ONCE)
    /// The socket failed or both sides ended it; reported whether asked for or not.
    static let broken = UInt32(SHIM_EPOLL_ERROR) | UInt32(SHIM_EPOLL_HANG_UP)
}
