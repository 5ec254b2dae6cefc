public import CShims
import Engine
import Wire

// Chapter: loop. One epoll descriptor, driven by the program that embeds it.
//
//     void on_timer(void *user);
//     rt_loop *loop;
//     rt_loop_new(&loop);
//     rt_loop_add_timer(loop, 1000, 0, on_timer, NULL, NULL, NULL);
//     rt_loop_fd(loop);           // readable when there is work: for epoll, poll or another loop
//     rt_loop_dispatch(loop, 0);  // does the work that is ready; or rt_loop_run, or rt_loop_start
//     rt_loop_free(loop);

/// An event loop. The I/O and the callbacks of the objects created on it happen inside
/// `rt_loop_dispatch` or `rt_loop_run` on the calling thread, or on the loop's own thread after
/// `rt_loop_start`. Objects keep their loop alive, so it may be freed before them. Since 0.1.
public typealias rt_loop = OpaquePointer

/// A job or timer of the program. Runs on the loop's thread, one callback at a time. Since 0.1.
public typealias rt_loop_fn = @convention(c) (_ user: UnsafeMutableRawPointer?) -> Void

/// Creates a loop. It opens three descriptors (epoll, timerfd, eventfd) and starts no thread. Any
/// thread. Since 0.1.
/// - Parameter out: receives the loop; free it with `rt_loop_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_SYSTEM if no descriptors are
///   left.
@_cdecl("rt_loop_new")
public func rt_loop_new(_ out: UnsafeMutablePointer<rt_loop?>?) -> rt_status {
    border { () throws(RealtimeError) in
        let out = try required(out, "out")
        out.pointee = LoopHandle.export(LoopHandle(try Loop()))
    }
}

/// Frees the loop. If it is running, it is stopped, but this call does not wait for that. No
/// callback begins after this call returns, with one exception: the thread that runs the loop still
/// reports the end of each unfinished request (`rt_rest_request_send`) with RT_ERROR_CLOSED. Jobs
/// and timers are destroyed without running. Handles of objects created on the loop stay valid, and
/// return RT_ERROR_CLOSED. NULL is accepted. Any thread. Since 0.1.
@_cdecl("rt_loop_free")
public func rt_loop_free(_ loop: rt_loop?) {
    LoopHandle.release(loop) { $0.loop.close() }
}

/// The loop's descriptor. It is readable when `rt_loop_dispatch` has work to do, timers included,
/// and may be readable once more when a cancelled timer would have been due. Add it to the host's
/// event loop (epoll, poll, asyncio, GLib, libuv) for reading; never read, write or close it. It
/// does not change while the loop exists. Any thread. Since 0.1.
///
/// Edge-triggered hosts (EPOLLET, Go's netpoll, mio, Tokio) are supported: call `rt_loop_dispatch`
/// with 0 once for each event. If that call returns while work is left, because a turn is limited,
/// there is another event. If it returned RT_ERROR_BUSY, there is another event when the thread
/// that runs the loop has returned.
/// - Returns: the descriptor, or a negative `rt_status`.
@_cdecl("rt_loop_fd")
public func rt_loop_fd(_ loop: rt_loop?) -> Int32 {
    borderValue { () throws(RealtimeError) in
        let loop = try LoopHandle.borrow(loop).loop
        try loop.checkNotForked()
        return loop.hostDescriptor
    }
}

/// Waits up to `timeout_ms` for work, then does all work that is ready: I/O, timers, jobs and their
/// callbacks happen inside this call, on this thread. Any thread, one at a time. Since 0.1.
/// - Parameter timeout_ms: 0 does not wait, -1 waits without limit.
/// - Returns: RT_OK, also if there was nothing to do; RT_ERROR_REENTRANT inside a callback of this
///   loop; RT_ERROR_BUSY while another thread runs it; RT_ERROR_FORKED; RT_ERROR_CLOSED after
///   `rt_loop_free`.
@_cdecl("rt_loop_dispatch")
public func rt_loop_dispatch(_ loop: rt_loop?, _ timeout_ms: Int32) -> rt_status {
    border { () throws(RealtimeError) in
        try LoopHandle.borrow(loop).loop.dispatch(timeout: timeout_ms)
    }
}

/// Dispatches until `rt_loop_stop`. If the loop was stopped before, it returns at once. Any thread,
/// one at a time. Since 0.1.
/// - Returns: RT_OK after a stop; otherwise as `rt_loop_dispatch`.
@_cdecl("rt_loop_run")
public func rt_loop_run(_ loop: rt_loop?) -> rt_status {
    border { () throws(RealtimeError) in try LoopHandle.borrow(loop).loop.run() }
}

/// Makes `rt_loop_run`, or the loop's own thread, return after the current turn. Does not wait. Any
/// thread, also inside a callback. It is async-signal-safe: it takes no lock, allocates no memory
/// and preserves errno. So a signal handler may call it, as long as the loop is not freed
/// meanwhile. For the same reason a failure leaves `rt_last_error` unchanged. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_FORKED; RT_ERROR_CLOSED.
@_cdecl("rt_loop_stop")
public func rt_loop_stop(_ loop: rt_loop?) -> rt_status {
    guard let loop else { return RT_STATUS.ERROR_INVALID_ARGUMENT.rawValue }
    return LoopHandle.exported(loop).loop.requestStop()?.rawValue ?? RT_STATUS.OK.rawValue
}

/// Runs the loop on a thread of its own, which then calls all callbacks. All signals are blocked on
/// that thread. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_BUSY if the loop is already running; RT_ERROR_SYSTEM if the thread
///   cannot be created.
@_cdecl("rt_loop_start")
public func rt_loop_start(_ loop: rt_loop?) -> rt_status {
    border { () throws(RealtimeError) in try LoopHandle.borrow(loop).loop.start() }
}

/// Stops the loop's own thread and waits until it has ended; no callback runs afterwards. The loop
/// can be started again. Any thread. Since 0.1.
/// - Returns: RT_OK, also if there was no thread; RT_ERROR_REENTRANT inside a callback.
@_cdecl("rt_loop_stop_and_wait")
public func rt_loop_stop_and_wait(_ loop: rt_loop?) -> rt_status {
    border { () throws(RealtimeError) in try LoopHandle.borrow(loop).loop.stopAndWait() }
}

/// Runs `fn` once on the loop's thread, in the next turn. Jobs run in the order in which they were
/// posted. If the loop is freed first, only `destroy` is called. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT without `fn`; RT_ERROR_FORKED; RT_ERROR_CLOSED.
@_cdecl("rt_loop_post")
public func rt_loop_post(
    _ loop: rt_loop?, _ fn: rt_loop_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return border { () throws(RealtimeError) in
        let fn = try required(fn, "fn")
        try LoopHandle.borrow(loop).loop.post { fn(box.user) }
    }
}

/// Runs `fn` after `delay_ms`, then every `interval_ms` unless that is 0. It uses the monotonic
/// clock. If the host dispatches late, missed intervals are skipped. Any thread. Since 0.1.
/// - Parameter delay_ms: 0 or more; 0 means the next turn.
/// - Parameter interval_ms: 0 for a timer that fires once.
/// - Parameter out_id: receives the id for `rt_loop_cancel_timer`; may be NULL.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_FORKED; RT_ERROR_CLOSED.
@_cdecl("rt_loop_add_timer")
public func rt_loop_add_timer(
    _ loop: rt_loop?, _ delay_ms: Int64, _ interval_ms: Int64, _ fn: rt_loop_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?,
    _ out_id: UnsafeMutablePointer<UInt64>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return border { () throws(RealtimeError) in
        let fn = try required(fn, "fn")
        let delay = try milliseconds(delay_ms, "delay_ms")
        let interval = try milliseconds(interval_ms, "interval_ms")
        let id = try LoopHandle.borrow(loop).loop.addTimer(after: delay, every: interval) {
            fn(box.user)
        }
        out_id?.pointee = id
    }
}

/// Cancels a timer and calls `destroy` for its user data. Called on the loop's thread, the timer
/// does not fire after this returns. Called on another thread, a call of `fn` may still be running.
/// Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_NOT_FOUND if it has fired or was cancelled; RT_ERROR_FORKED.
@_cdecl("rt_loop_cancel_timer")
public func rt_loop_cancel_timer(_ loop: rt_loop?, _ id: UInt64) -> rt_status {
    border { () throws(RealtimeError) in try LoopHandle.borrow(loop).loop.cancelTimer(id) }
}

/// Reads the loop's statistics. Any thread. Since 0.1.
/// - Parameter out: receives the numbers.
/// - Parameter size: `sizeof(rt_loop_statistics)`, from which a later version of the library knows
///   the size of your struct.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL or a size of 0; RT_ERROR_FORKED.
@_cdecl("rt_loop_get_statistics")
public func rt_loop_get_statistics(
    _ loop: rt_loop?, _ out: UnsafeMutablePointer<rt_loop_statistics>?, _ size: Int
) -> rt_status {
    border { () throws(RealtimeError) in
        let loop = try LoopHandle.borrow(loop).loop
        try loop.checkNotForked()
        try copy(loop.statistics, to: out, size)
    }
}
