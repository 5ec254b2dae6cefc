import Engine
import Session
import Wire

// Chapter: call. Waiting for what is answered later: requests, methods, logins, subscriptions,
// sign-ins.
//
// Each function that begins such a call takes a completion (`fn`, `user`, `destroy`) and a last
// parameter `out_call`. The completion is called on the loop's thread. With `out_call`, the
// function also returns an `rt_call`, by which any thread waits for the answer. Both are optional:
// pass NULL. Without a loop of your own (NULL), the library's thread does the work, and a program
// needs no callbacks at all. `rt_call_response` and `rt_call_outcome` return the answer.

/// A call that was begun, and its answer. It does not keep the object alive, and the call itself
/// continues when this is freed. Since 0.1.
public typealias rt_call = OpaquePointer

/// Waits until the call is answered. A thread must drive the object's loop meanwhile; the library's
/// own loop has one. Several threads may wait for one call, and again. Any thread. Since 0.1.
/// - Parameter timeout_ms: 0 does not wait, which callbacks may do, too; -1 waits without limit.
/// - Returns: the answer's status. For a request that is `rt_rest_response_error`, for a Meteor
///   call RT_OK or RT_ERROR_METHOD, for a sign-in that of its failure; `rt_last_error` says why.
///   Without an answer: RT_ERROR_TIMEOUT if there is none in time, and the call continues;
///   RT_ERROR_CLOSED if the object or its loop was freed; RT_ERROR_CANCELLED after
///   `rt_call_interrupt`; RT_ERROR_REENTRANT in a callback of the loop, and in a stub;
///   RT_ERROR_INVALID_ARGUMENT; RT_ERROR_FORKED.
@_cdecl("rt_call_wait")
public func rt_call_wait(_ call: rt_call?, _ timeout_ms: Int64) -> rt_status {
    border { () throws(RealtimeError) in
        try PendingCall.borrow(call).wait(waitLimit(timeout_ms))
    }
}

/// Ends the `rt_call_wait` of other threads with RT_ERROR_CANCELLED. If none waits, the next one
/// that would wait ends at once. The call itself continues. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED.
@_cdecl("rt_call_interrupt")
public func rt_call_interrupt(_ call: rt_call?) -> rt_status {
    border { () throws(RealtimeError) in try PendingCall.borrow(call).interrupt() }
}

/// Frees a call, also before its answer, which then goes to the completion alone. A thread that
/// waits for it gets RT_ERROR_CLOSED. NULL is accepted. Any thread. Since 0.1.
@_cdecl("rt_call_free")
public func rt_call_free(_ call: rt_call?) { PendingCall.release(call) { $0.close() } }
