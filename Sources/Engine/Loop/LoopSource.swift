/// Owns a descriptor that a loop watches.
protocol LoopSource: AnyObject {
    /// Its descriptor is ready for `events` (`RT_EPOLL_*`).
    func ready(_ events: UInt32)
    /// The turn that `Loop.schedule` asked for.
    func turn()
    /// The loop has ended: release the descriptor.
    func loopClosed()
}

/// An object on a loop that must be notified when the loop ends, even while it watches nothing.
protocol LoopResident: AnyObject {
    /// The loop has ended and will run nothing more.
    func loopClosed()
}
