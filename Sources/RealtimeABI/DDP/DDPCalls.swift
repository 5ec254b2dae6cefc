public import CShims
import Documents
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
/// - Parameter out_call: receives the call, for `rt_call_wait`; free it with `rt_call_free`. NULL
///   if no thread waits.
/// - Returns: RT_OK; RT_ERROR_METHOD if the stub has failed and the options say so: then nothing is
///   sent, and `fn` is not called again. Inside a stub it is returned whatever the options say, and
///   `fn` receives the failure, too. RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_UTF8;
///   RT_ERROR_PROTOCOL for what is not an EJSON text; RT_ERROR_QUEUE_FULL if 65,536 calls have not
///   ended; RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_ddp_call")
public func rt_ddp_call(
    _ ddp: rt_ddp?, _ method: UnsafePointer<CChar>?, _ params: UnsafePointer<CChar>?,
    _ options: UnsafePointer<rt_ddp_call_options>?, _ fn: rt_ddp_outcome_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?,
    _ out_call: UnsafeMutablePointer<rt_call?>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return ddpMethod(ddp, options, box, out_call) {
        (client, options, handlers) throws(RealtimeError) in
        let request = DDPRequest(
            try text(method, "method"), try ejsonArray(params, "params"), options)
        return try client.call(request, handlers)
    }
}

/// Inserts a document, here and at the server. Declares the collection, with texts as
/// new ids, unless the program has (`rt_ddp_declare`). Any thread. Since 0.1.
/// - Parameter document: an EJSON object. Without `_id`, the client and the server draw the same
///   id. The value of the call's stages is the id.
/// - Parameter options: and the following, as in `rt_ddp_call`.
/// - Returns: as `rt_ddp_call`.
@_cdecl("rt_ddp_insert")
public func rt_ddp_insert(
    _ ddp: rt_ddp?, _ collection: UnsafePointer<CChar>?, _ document: UnsafePointer<CChar>?,
    _ options: UnsafePointer<rt_ddp_call_options>?, _ fn: rt_ddp_outcome_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?,
    _ out_call: UnsafeMutablePointer<rt_call?>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return ddpMethod(ddp, options, box, out_call) {
        (client, options, handlers) throws(RealtimeError) in
        try client.insert(
            text(collection, "collection"), ejson(document, "document"), options: options, handlers)
    }
}

/// Changes a document, here and at the server. Any thread. Since 0.1.
/// - Parameter id: its id as EJSON text: a string in quotes, or an ObjectID.
/// - Parameter modifier: an EJSON object such as `{"$set":{"done":true}}`. The value of the call's
///   stages is the number of documents that were changed.
/// - Parameter options: and the following, as in `rt_ddp_call`.
/// - Returns: as `rt_ddp_call`.
@_cdecl("rt_ddp_update")
public func rt_ddp_update(
    _ ddp: rt_ddp?, _ collection: UnsafePointer<CChar>?, _ id: UnsafePointer<CChar>?,
    _ modifier: UnsafePointer<CChar>?, _ options: UnsafePointer<rt_ddp_call_options>?,
    _ fn: rt_ddp_outcome_fn?, _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?,
    _ out_call: UnsafeMutablePointer<rt_call?>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return ddpMethod(ddp, options, box, out_call) {
        (client, options, handlers) throws(RealtimeError) in
        try client.update(
            text(collection, "collection"), id: ejson(id, "id"), ejson(modifier, "modifier"),
            options: options, handlers)
    }
}

/// Removes a document, here and at the server. Any thread. Since 0.1.
/// - Parameter id: as in `rt_ddp_update`.
/// - Parameter options: and the following, as in `rt_ddp_call`.
/// - Returns: as `rt_ddp_call`.
@_cdecl("rt_ddp_remove")
public func rt_ddp_remove(
    _ ddp: rt_ddp?, _ collection: UnsafePointer<CChar>?, _ id: UnsafePointer<CChar>?,
    _ options: UnsafePointer<rt_ddp_call_options>?, _ fn: rt_ddp_outcome_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?,
    _ out_call: UnsafeMutablePointer<rt_call?>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return ddpMethod(ddp, options, box, out_call) {
        (client, options, handlers) throws(RealtimeError) in
        try client.remove(
            text(collection, "collection"), id: ejson(id, "id"), options: options, handlers)
    }
}

/// Writes several documents, here and at the server, as one: a call for each of them, and one
/// notification of the changes here. Inside a stub, the writes are a part of it. Any thread. Since
/// 0.1.
/// - Parameter writes: an EJSON array whose elements are `{"insert":COLLECTION,"document":{…}}`,
///   `{"update":COLLECTION,"id":ID,"modifier":{…}}` or `{"remove":COLLECTION,"id":ID}`; see
///   `rt_ddp_insert`, `rt_ddp_update` and `rt_ddp_remove`. If an argument of one cannot be used,
///   none is made. A write that fails at the documents, such as an insertion whose id is there,
///   does not undo the others.
/// - Parameter options: as in `rt_ddp_call`.
/// - Parameter fn: as in `rt_ddp_call`, for each write. The outcome's `index` says which one it is.
/// - Parameter out_call: as in `rt_ddp_call`, for all writes together. The value of its outcome is
///   null, its error that of the first write that failed.
/// - Returns: as `rt_ddp_call`. RT_ERROR_METHOD if one has failed here and the options say so: it
///   is not sent; the others are made nevertheless.
@_cdecl("rt_ddp_write")
public func rt_ddp_write(
    _ ddp: rt_ddp?, _ writes: UnsafePointer<CChar>?,
    _ options: UnsafePointer<rt_ddp_call_options>?, _ fn: rt_ddp_outcome_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?,
    _ out_call: UnsafeMutablePointer<rt_call?>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return ddpCall(ddp) { (client) throws(RealtimeError) in
        let wishes = try DDPCallWishes(options)
        _ = try required(writes, "writes")
        var given: [DocumentWrite] = []
        for (index, write) in try ejsonArray(writes, "writes").enumerated() {
            given.append(try documentWrite(write, at: index))
        }
        var count = 0
        let pending = PendingCall.wanted(out_call, on: client.loop)
        let end = pending.map { writesEnd($0.answerer) }
        let outcomes = try client.write(options: wishes.options) {
            defer { count += 1 }
            var handlers = wishes.handlers(box, index: count)
            end?.add(to: &handlers)
            return handlers
        } _: { _ in
            given
        }
        try wishes.report(outcomes, to: box)
        pending?.export(to: out_call)
    }
}

private func documentWrite(
    _ write: EJSON, at index: Int
) throws(RealtimeError) -> DocumentWrite {
    if case .object(let fields) = write {
        if case .string(let collection)? = fields["insert"], let document = fields["document"],
            fields.count == 2
        {
            return .insert(collection, document)
        }
        if case .string(let collection)? = fields["update"], let id = fields["id"],
            let modifier = fields["modifier"], fields.count == 3
        {
            return .update(collection, id: id, modifier: modifier)
        }
        if case .string(let collection)? = fields["remove"], let id = fields["id"],
            fields.count == 2
        {
            return .remove(collection, id: id)
        }
    }
    throw RealtimeError(
        .invalidArgument,
        "writes[\(index)] has not the members insert and document, or update, id and modifier, or"
            + " remove and id")
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
        guard given.stages >> UInt32(RT_DDP_STAGE.COMPLETED.rawValue + 1) == 0 else {
            throw RealtimeError(
                .invalidArgument, "stages is \(given.stages), which has bits of no stage")
        }
        stages = given.stages
    }

    func wants(_ stage: RT_DDP_STAGE) -> Bool {
        stages == 0 ? stage == .COMPLETED : stages & 1 << UInt32(stage.rawValue) != 0
    }

    /// Handlers that call a C function.
    /// - Parameter index: of a write in a batch.
    func handlers(
        _ box: CallbackBox<rt_ddp_outcome_fn>, index: Int = 0
    ) -> DDPCallHandlers {
        var handlers = DDPCallHandlers()
        guard let function = box.function else { return handlers }
        if wants(.RESULT) {
            handlers.result = { show($0, .RESULT, index: index, to: function, box.user) }
        }
        if wants(.COMPLETED) {
            handlers.completed = { show($0, .COMPLETED, index: index, to: function, box.user) }
        }
        return handlers
    }
}

extension DDPCallWishes {
    /// Reports how the writes of a batch have ended here.
    /// - Throws: the first failure.
    func report(
        _ outcomes: [Result<DDPCall, DDPError>], to box: CallbackBox<rt_ddp_outcome_fn>
    ) throws(RealtimeError) {
        if wants(.STUB), let function = box.function {
            for (index, outcome) in outcomes.enumerated() {
                show(outcome.map { $0.value }, .STUB, index: index, to: function, box.user)
            }
        }
        for (index, outcome) in outcomes.enumerated() {
            if case .failure(let error) = outcome {
                throw error.realtimeError("write \(index) has failed")
            }
        }
    }
}

/// Makes a call: `body` gets its options and handlers.
private func ddpMethod(
    _ ddp: rt_ddp?, _ options: UnsafePointer<rt_ddp_call_options>?,
    _ box: CallbackBox<rt_ddp_outcome_fn>, _ out: UnsafeMutablePointer<rt_call?>?,
    _ body: (DDPConnection, DDPCallOptions, DDPCallHandlers) throws(RealtimeError) -> Result<
        DDPCall, DDPError
    >
) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in
        let wishes = try DDPCallWishes(options)
        let pending = PendingCall.wanted(out, on: client.loop)
        var handlers = wishes.handlers(box)
        handlers.set(pending?.answerer)
        let made = try body(client, wishes.options, handlers)
        if wishes.wants(.STUB), let function = box.function {
            show(made.map { $0.value }, .STUB, to: function, box.user)
        }
        if case .failure(let error) = made { throw error.realtimeError("the stub has failed") }
        pending?.export(to: out)
    }
}
