public import CShims
import Engine
import Session
import Wire

// Chapter: ddp calls. Methods of the server, and writes to its collections.

/// Calls a method of the server. Its stub (`rt_ddp_set_stub`) runs before this returns. Without a
/// connection the call waits for one. Inside a stub, only the stub of the method runs. Any thread.
/// Since 0.1.
/// - Parameter params: an EJSON array; NULL for none.
/// - Parameter options: NULL for the defaults.
/// - Parameter fn: receives the stages that the options ask for, otherwise only the last one: on
///   the loop's thread, except `RT_DDP_STAGE_STUB`, which it receives inside this call. NULL for
///   nobody.
/// - Returns: RT_OK; RT_ERROR_METHOD if the stub has failed and the options say so: then nothing is
///   sent, and `fn` is not called again; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_UTF8;
///   RT_ERROR_PROTOCOL for what is not an EJSON text; RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed
///   loop.
@_cdecl("rt_ddp_call")
public func rt_ddp_call(
    _ ddp: rt_ddp?, _ method: UnsafePointer<CChar>?, _ params: UnsafePointer<CChar>?,
    _ options: UnsafePointer<rt_ddp_call_options>?, _ fn: rt_ddp_outcome_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return ddpMethod(ddp, options, box) { (client, options, handlers) throws(RealtimeError) in
        let request = DDPRequest(
            try text(method, "method"), try ejsonArray(params, "params"), options)
        return try client.call(request, handlers)
    }
}

/// Inserts a document, here and at the server. Needs `rt_ddp_declare`, or the insert is only made
/// at the server. Any thread. Since 0.1.
/// - Parameter document: an EJSON object. Without `_id`, the client and the server draw the same
///   id. The value of the call's stages is the id.
/// - Parameter fn: as in `rt_ddp_call`.
/// - Returns: as `rt_ddp_call`.
@_cdecl("rt_ddp_insert")
public func rt_ddp_insert(
    _ ddp: rt_ddp?, _ collection: UnsafePointer<CChar>?, _ document: UnsafePointer<CChar>?,
    _ options: UnsafePointer<rt_ddp_call_options>?, _ fn: rt_ddp_outcome_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return ddpMethod(ddp, options, box) { (client, options, handlers) throws(RealtimeError) in
        try client.insert(
            text(collection, "collection"), ejson(document, "document"), options: options, handlers)
    }
}

/// Changes a document, here and at the server. Any thread. Since 0.1.
/// - Parameter id: its id as EJSON text: a string in quotes, or an ObjectID.
/// - Parameter modifier: an EJSON object such as `{"$set":{"done":true}}`. The value of the call's
///   stages is the number of documents that were changed.
/// - Parameter fn: as in `rt_ddp_call`.
/// - Returns: as `rt_ddp_call`.
@_cdecl("rt_ddp_update")
public func rt_ddp_update(
    _ ddp: rt_ddp?, _ collection: UnsafePointer<CChar>?, _ id: UnsafePointer<CChar>?,
    _ modifier: UnsafePointer<CChar>?, _ options: UnsafePointer<rt_ddp_call_options>?,
    _ fn: rt_ddp_outcome_fn?, _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return ddpMethod(ddp, options, box) { (client, options, handlers) throws(RealtimeError) in
        try client.update(
            text(collection, "collection"), id: ejson(id, "id"), ejson(modifier, "modifier"),
            options: options, handlers)
    }
}

/// Removes a document, here and at the server. Any thread. Since 0.1.
/// - Parameter id: as in `rt_ddp_update`.
/// - Parameter fn: as in `rt_ddp_call`.
/// - Returns: as `rt_ddp_call`.
@_cdecl("rt_ddp_remove")
public func rt_ddp_remove(
    _ ddp: rt_ddp?, _ collection: UnsafePointer<CChar>?, _ id: UnsafePointer<CChar>?,
    _ options: UnsafePointer<rt_ddp_call_options>?, _ fn: rt_ddp_outcome_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return ddpMethod(ddp, options, box) { (client, options, handlers) throws(RealtimeError) in
        try client.remove(
            text(collection, "collection"), id: ejson(id, "id"), options: options, handlers)
    }
}

/// The options of a call, and the stages that it reports.
struct DDPCallWishes {
    var options = DDPCallOptions()
    private var stages: UInt32 = 0

    init(_ pointer: UnsafePointer<rt_ddp_call_options>?) throws(RealtimeError) {
        guard let pointer else { return }
        let size = pointer.pointee.struct_bytes
        guard size >= MemoryLayout<Int>.size else {
            throw RealtimeError(.invalidArgument, "struct_bytes of the call's options is \(size)")
        }
        // An older program's struct has fewer fields.
        var given = rt_ddp_call_options()
        withUnsafeMutableBytes(of: &given) {
            $0.copyMemory(
                from: UnsafeRawBufferPointer(start: pointer, count: min(size, $0.count)))
        }
        options.timeout = try milliseconds(given.timeout_ms, "timeout_ms")
        options.isWait = given.wait
        options.noRetry = given.no_retry
        options.throwsStubErrors = given.throw_stub_errors
        stages = given.stages
    }

    func wants(_ stage: RT_DDP_STAGE) -> Bool {
        stages == 0 ? stage == .COMPLETED : stages & 1 << UInt32(stage.rawValue) != 0
    }

    /// Handlers that call a C function.
    func handlers(
        _ box: CallbackBox<rt_ddp_outcome_fn>
    ) -> DDPCallHandlers {
        var handlers = DDPCallHandlers()
        guard let function = box.function else { return handlers }
        if wants(.RESULT) {
            handlers.result = { show($0, .RESULT, to: function, box.user) }
        }
        if wants(.COMPLETED) {
            handlers.completed = { show($0, .COMPLETED, to: function, box.user) }
        }
        return handlers
    }
}

/// Makes a call: `body` gets its options and handlers.
private func ddpMethod(
    _ ddp: rt_ddp?, _ options: UnsafePointer<rt_ddp_call_options>?,
    _ box: CallbackBox<rt_ddp_outcome_fn>,
    _ body: (DDPConnection, DDPCallOptions, DDPCallHandlers) throws(RealtimeError) -> Result<
        DDPCall, DDPError
    >
) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in
        let wishes = try DDPCallWishes(options)
        let made = try body(client, wishes.options, wishes.handlers(box))
        if wishes.wants(.STUB), let function = box.function {
            show(made.map { $0.value }, .STUB, to: function, box.user)
        }
        if case .failure(let error) = made { throw error.realtimeError("the stub has failed") }
    }
}
