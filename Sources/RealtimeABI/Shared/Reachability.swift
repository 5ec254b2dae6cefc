import Engine
import Wire

// Chapter: reachability. Whether there is a network through which a peer can be reached.
//
//     rt_reachability *reachability;
//     rt_loop *loop;
//     bool is_online;
//     rt_loop_new(&loop);
//     rt_reachability_new(loop, RT_REACHABILITY_AUTO, &reachability);
//     rt_reachability_is_online(reachability, &is_online);
//     rt_reachability_free(reachability);
//     rt_loop_free(loop);

/// A reachability monitor: it says whether there is a network. Objects that repeat failed attempts
/// consult it before each attempt, also the first: while their server cannot be reached, they make
/// and count none, report the wait once, and continue within a second once the network returns.
/// Other objects make their only attempt in any case. One monitor can serve any number of objects
/// on its loop, which keep it alive. Since 0.1.
public typealias rt_reachability = OpaquePointer

/// How reachability is decided. Since 0.1.
public typealias rt_reachability_mode = Int32

/// Values of `rt_reachability_mode`. Since 0.1.
public enum RT_REACHABILITY: Int32 {
    /// By the links, addresses and routes that the kernel reports (rtnetlink). A peer counts as
    /// reachable if one of these holds: it is this machine or a Unix socket; an interface other
    /// than the loopback is up and running and has a default route; such an interface has a route
    /// to its address; or, for a peer known by name, such an interface has any route that is not
    /// link-local (for a name in .local, any route). In doubt the peer is reachable: a wrong yes
    /// costs one attempt, a wrong no would never connect. With a proxy, the proxy is the peer. If
    /// the system does not show its network, this mode works as RT_REACHABILITY_ALWAYS, and one log
    /// line says so.
    case AUTO = 0
    /// By `rt_reachability_set_online`; initially online. For programs that know better than the
    /// kernel.
    case MANUAL = 1
    /// All peers count as reachable.
    case ALWAYS = 2
}

/// Receives the new state: whether there is a network now. Runs on the loop's thread. Since 0.1.
public typealias rt_reachability_fn =
    @convention(c) (_ online: Bool, _ user: UnsafeMutableRawPointer?) -> Void

/// Creates a reachability monitor on a loop. The first one with RT_REACHABILITY_AUTO makes the loop
/// watch the network through one descriptor, until the loop is freed. Any thread. Since 0.1.
/// - Parameter out: receives the monitor; free it with `rt_reachability_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL or an unknown mode; RT_ERROR_FORKED;
///   RT_ERROR_CLOSED.
@_cdecl("rt_reachability_new")
public func rt_reachability_new(
    _ loop: rt_loop?, _ mode: rt_reachability_mode,
    _ out: UnsafeMutablePointer<rt_reachability?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let loop = try LoopHandle.borrow(loop).loop
        let out = try required(out, "out")
        out.pointee = Reachability.export(try Reachability(on: loop, mode: named(mode)))
    }
}

/// Frees a reachability monitor. Its callback is no longer called; objects that received it
/// continue to use it. NULL is accepted. Any thread. Since 0.1.
@_cdecl("rt_reachability_free")
public func rt_reachability_free(_ reachability: rt_reachability?) {
    Reachability.release(reachability) { $0.abandon() }
}

/// Changes the mode. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for an unknown mode; RT_ERROR_FORKED;
///   RT_ERROR_CLOSED.
@_cdecl("rt_reachability_set_mode")
public func rt_reachability_set_mode(
    _ reachability: rt_reachability?, _ mode: rt_reachability_mode
) -> rt_status {
    border { () throws(RealtimeError) in try Reachability.borrow(reachability).setMode(named(mode))
    }
}

/// Sets whether there is a network, for RT_REACHABILITY_MANUAL. In another mode the value is kept
/// for a later change to manual mode. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED; RT_ERROR_CLOSED.
@_cdecl("rt_reachability_set_online")
public func rt_reachability_set_online(
    _ reachability: rt_reachability?, _ online: Bool
) -> rt_status {
    border { () throws(RealtimeError) in try Reachability.borrow(reachability).setOnline(online) }
}

/// Whether a host known by name counts as reachable. Any thread. Since 0.1.
/// - Parameter out: receives the result.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED.
@_cdecl("rt_reachability_is_online")
public func rt_reachability_is_online(
    _ reachability: rt_reachability?, _ out: UnsafeMutablePointer<Bool>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let reachability = try Reachability.borrow(reachability)
        try reachability.loop.checkNotForked()
        try required(out, "out").pointee = reachability.isOnline
    }
}

/// - Callbacks: reachability, reachabilityCall
extension Reachability {
    /// Calls `fn` each time the result of `rt_reachability_is_online` changes from what it is now;
    /// NULL removes it. Changes close together cause one call, within half a second. Any thread.
    /// Since 0.1.
    /// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle; RT_ERROR_FORKED;
    ///   RT_ERROR_CLOSED.
    func onChange(_ box: CallbackBox<rt_reachability_fn>) throws(RealtimeError) {
        try setOnChange(box.function.map { function in { function($0, box.user) } })
    }
}

/// Runs a call on a reachability monitor.
func reachabilityCall(
    _ reachability: rt_reachability?, _ body: (Reachability) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in try body(Reachability.borrow(reachability)) }
}

private func named(_ mode: rt_reachability_mode) throws(RealtimeError) -> Reachability.Mode {
    try named(
        mode, "mode",
        "RT_REACHABILITY_AUTO, RT_REACHABILITY_MANUAL or RT_REACHABILITY_ALWAYS")
}
