import Engine
import Wire

// Chapter: reachability. Whether there is a network to reach a peer by.

/// Whether there is a network. What comes back by itself after a loss asks it before an attempt:
/// offline is a state in which nothing is tried and nothing counted. One serves any number of
/// objects of its loop, which keep it alive. Since 0.1.
public typealias rt_reachability = OpaquePointer

/// By what reachability is judged. Since 0.1.
public typealias rt_reachability_mode = Int32

/// Values of `rt_reachability_mode`. Since 0.1.
public enum RT_REACHABILITY: Int32 {
    /// By what the kernel tells of links, addresses and routes (rtnetlink). A peer counts as
    /// reachable when it is this machine or a Unix socket; when an interface other than the
    /// loopback is up and running and has a default route; when such an interface has a route to
    /// its address; and, for a name, when such an interface has any route that is not link-local,
    /// or, for a name in .local, any route.
    /// In doubt it is reachable: a wrong yes costs an attempt, a wrong no would never connect.
    /// Behind a proxy, the proxy is the peer. Where the system does not show its network, this is
    /// as RT_REACHABILITY_ALWAYS, and one line of the log says so.
    case AUTO = 0
    /// By `rt_reachability_set_online`; online at first. For hosts that know better.
    case MANUAL = 1
    /// Everything is reachable.
    case ALWAYS = 2
}

/// There is a network now, or none any more. Runs on the loop's thread. Since 0.1.
public typealias rt_reachability_fn =
    @convention(c) (_ online: Bool, _ user: UnsafeMutableRawPointer?) -> Void

/// Makes a reachability on a loop. The first with RT_REACHABILITY_AUTO has the loop watch the
/// network, by one descriptor, until the loop is freed. Any thread. Since 0.1.
/// - Parameter out: receives it; to be freed with `rt_reachability_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL or a mode that is not listed;
///   RT_ERROR_FORKED; RT_ERROR_CLOSED.
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

/// Gives a reachability back; what was given it uses it on, and its callback is not called any
/// more. NULL is accepted. Any thread. Since 0.1.
@_cdecl("rt_reachability_free")
public func rt_reachability_free(_ reachability: rt_reachability?) {
    Reachability.release(reachability) { $0.abandon() }
}

/// Judges by another mode from now on. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a mode that is not listed; RT_ERROR_FORKED;
///   RT_ERROR_CLOSED.
@_cdecl("rt_reachability_set_mode")
public func rt_reachability_set_mode(
    _ reachability: rt_reachability?, _ mode: rt_reachability_mode
) -> rt_status {
    border { () throws(RealtimeError) in try Reachability.borrow(reachability).setMode(named(mode))
    }
}

/// Says whether there is a network, for RT_REACHABILITY_MANUAL; in another mode it is kept for when
/// that is set. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED; RT_ERROR_CLOSED.
@_cdecl("rt_reachability_set_online")
public func rt_reachability_set_online(
    _ reachability: rt_reachability?, _ online: Bool
) -> rt_status {
    border { () throws(RealtimeError) in try Reachability.borrow(reachability).setOnline(online) }
}

/// Whether a host that is known by name counts as reachable. Any thread. Since 0.1.
/// - Parameter out: receives the answer.
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

/// Has `fn` called each time the answer of `rt_reachability_is_online` has changed from what it is
/// now; NULL takes it away. Changes that come together cause one call, within half a second. Any
/// thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle; RT_ERROR_FORKED; RT_ERROR_CLOSED.
@_cdecl("rt_reachability_on_change")
public func rt_reachability_on_change(
    _ reachability: rt_reachability?, _ fn: rt_reachability_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return border { () throws(RealtimeError) in
        try Reachability.borrow(reachability).setOnChange(
            fn.map { fn in { fn($0, box.user) } })
    }
}

private func named(_ mode: rt_reachability_mode) throws(RealtimeError) -> Reachability.Mode {
    try named(
        mode, "mode",
        "RT_REACHABILITY_AUTO, RT_REACHABILITY_MANUAL or RT_REACHABILITY_ALWAYS")
}
