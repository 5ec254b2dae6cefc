/// Something with a descriptor on a loop.
protocol LoopSource: AnyObject {
    /// Its descriptor is ready for `events` (`RT_EPOLL_*`).
    func ready(_ events: UInt32)
    /// The turn that `Loop.schedule` asked for.
    func turn()
    /// The loop is over: let go of the descriptor.
    func loopClosed()
}

/// Something on a loop that must hear of its end, whatever it waits for.
protocol LoopResident: AnyObject {
    /// The loop is over; nothing of it runs afterwards.
    func loopClosed()
}
