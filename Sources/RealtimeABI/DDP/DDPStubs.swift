import CShims
import Documents
import Engine
import Session
import Wire

// Chapter: ddp stubs. What a method does to the local documents, until the server has done it.

/// Does what a method will do at the server: on the thread that calls the method, before the call
/// returns. It must not wait for other threads, and neither must the callbacks of its own calls;
/// what runs a loop or waits for one returns RT_ERROR_REENTRANT there. `params` is the EJSON array
/// of the call, with a NUL after it, valid until the stub returns. Its value is null unless
/// `rt_ddp_stub_return` sets another one. Since 0.1.
public typealias rt_ddp_stub_fn =
    @convention(c) (
        _ stub: rt_ddp_stub?, _ params: UnsafePointer<CChar>?, _ params_length: Int,
        _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Sets the stub of a method. Calls that were made before are not affected. Any thread. Since 0.1.
/// - Parameter fn: NULL for no stub.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_UTF8; RT_ERROR_FORKED;
///   RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_ddp_set_stub")
public func rt_ddp_set_stub(
    _ ddp: rt_ddp?, _ method: UnsafePointer<CChar>?, _ fn: rt_ddp_stub_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return ddpCall(ddp) { (client) throws(RealtimeError) in
        let method = try text(method, "method")
        guard let function = box.function else { return try client.setStub(method, nil) }
        try client.setStub(method) { context, params in
            DDPStubCall(context).run(params, function, box.user)
        }
    }
}

/// Sets the value that the stub returns. The last call counts. Inside the stub. Since 0.1.
/// - Parameter value: an EJSON text.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_UTF8; RT_ERROR_PROTOCOL for what
///   is not an EJSON text.
@_cdecl("rt_ddp_stub_return")
public func rt_ddp_stub_return(_ stub: rt_ddp_stub?, _ value: UnsafePointer<CChar>?) -> rt_status {
    stubCall(stub) { (call) throws(RealtimeError) in
        call.outcome = .success(try ejson(value, "value"))
    }
}

/// Makes the stub fail. The call is sent nevertheless, and what the stub has done to the documents
/// stays until the server has done the call. With `throw_stub_errors` it is undone at once, and
/// nothing is sent. Inside the stub. Since 0.1.
/// - Parameter code: what programs compare, such as `not-found`.
/// - Parameter reason: a sentence for people; NULL for none.
/// - Parameter details: an EJSON text; NULL for none.
/// - Returns: as `rt_ddp_stub_return`.
@_cdecl("rt_ddp_stub_fail")
public func rt_ddp_stub_fail(
    _ stub: rt_ddp_stub?, _ code: UnsafePointer<CChar>?, _ reason: UnsafePointer<CChar>?,
    _ details: UnsafePointer<CChar>?
) -> rt_status {
    stubCall(stub) { (call) throws(RealtimeError) in
        call.outcome = .failure(
            DDPError(
                try text(code, "code"), reason: try optionalText(reason, "reason"),
                details: details == nil ? nil : try ejson(details, "details")))
    }
}

/// Returns whether the method runs as a simulation: always, as in Meteor's stubs. For code that
/// client and server share. Inside the stub. Since 0.1.
/// - Returns: 1; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_ddp_stub_is_simulation")
public func rt_ddp_stub_is_simulation(_ stub: rt_ddp_stub?) -> Int32 {
    borderValue { () throws(RealtimeError) in
        _ = try DDPStubCall.borrow(stub)
        return 1
    }
}

/// Copies the id of the user who is logged in; "" for nobody. Inside the stub. Since 0.1.
/// - Parameter buffer: as in `rt_ddp_get_version`.
/// - Returns: as `rt_ddp_get_version`.
@_cdecl("rt_ddp_stub_get_user_id")
public func rt_ddp_stub_get_user_id(
    _ stub: rt_ddp_stub?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    stubCall(stub) { (call) throws(RealtimeError) in
        try copy(text: call.context.userID ?? "", to: buffer, size, out_length)
    }
}

/// Inserts a document into the local documents. Inside the stub. Since 0.1.
/// - Parameter document: an EJSON object. Without `_id`, it gets the id that the server's method
///   will draw too.
/// - Parameter fn: receives the document with its id, inside this call; NULL for nobody.
/// - Returns: RT_OK; RT_ERROR_METHOD if the document cannot be inserted, for example because its id
///   exists; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_UTF8; RT_ERROR_PROTOCOL for what is not an
///   EJSON text.
@_cdecl("rt_ddp_stub_insert")
public func rt_ddp_stub_insert(
    _ stub: rt_ddp_stub?, _ collection: UnsafePointer<CChar>?, _ document: UnsafePointer<CChar>?,
    _ fn: rt_ddp_document_fn?, _ user: UnsafeMutableRawPointer?
) -> rt_status {
    stubCall(stub) { (call) throws(RealtimeError) in
        let collection = try text(collection, "collection")
        let document = try ejson(document, "document")
        let id = try call.operation { (context) throws(DDPError) in
            try context.insert(collection, document)
        }
        guard let fn, let id = DocumentID(id), case .object(let fields) = document else { return }
        show(id, fields, to: fn, user)
    }
}

/// Changes local documents. Inside the stub. Since 0.1.
/// - Parameter selector: an EJSON object, or an id.
/// - Parameter modifier: an EJSON object such as `{"$set":{"done":true}}`.
/// - Parameter multi: whether all documents are changed that the selector finds, or the first one.
/// - Parameter out: receives how many there were; may be NULL.
/// - Returns: RT_OK; RT_ERROR_METHOD for a selector or modifier with a fault;
///   RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_UTF8; RT_ERROR_PROTOCOL for what is not an EJSON
///   text.
@_cdecl("rt_ddp_stub_update")
public func rt_ddp_stub_update(
    _ stub: rt_ddp_stub?, _ collection: UnsafePointer<CChar>?, _ selector: UnsafePointer<CChar>?,
    _ modifier: UnsafePointer<CChar>?, _ multi: Bool, _ out: UnsafeMutablePointer<UInt64>?
) -> rt_status {
    stubCall(stub) { (call) throws(RealtimeError) in
        let collection = try text(collection, "collection")
        let selector = try ejson(selector, "selector")
        let modifier = try ejson(modifier, "modifier")
        let count = try call.operation { (context) throws(DDPError) in
            try context.update(collection, selector, modifier, isMulti: multi)
        }
        out?.pointee = UInt64(count)
    }
}

/// Removes local documents. Inside the stub. Since 0.1.
/// - Parameter selector: an EJSON object, or an id.
/// - Parameter out: receives how many there were; may be NULL.
/// - Returns: as `rt_ddp_stub_update`.
@_cdecl("rt_ddp_stub_remove")
public func rt_ddp_stub_remove(
    _ stub: rt_ddp_stub?, _ collection: UnsafePointer<CChar>?, _ selector: UnsafePointer<CChar>?,
    _ out: UnsafeMutablePointer<UInt64>?
) -> rt_status {
    stubCall(stub) { (call) throws(RealtimeError) in
        let collection = try text(collection, "collection")
        let selector = try ejson(selector, "selector")
        let count = try call.operation { (context) throws(DDPError) in
            try context.remove(collection, selector)
        }
        out?.pointee = UInt64(count)
    }
}

/// Calls `fn` with each document that a query finds, as the stub has changed them. Inside the stub.
/// Since 0.1.
/// - Parameter selector: and the following, as in `rt_ddp_find`.
/// - Returns: as `rt_ddp_find`.
@_cdecl("rt_ddp_stub_find")
public func rt_ddp_stub_find(
    _ stub: rt_ddp_stub?, _ collection: UnsafePointer<CChar>?, _ selector: UnsafePointer<CChar>?,
    _ options: UnsafePointer<CChar>?, _ fn: rt_ddp_document_fn?, _ user: UnsafeMutableRawPointer?
) -> rt_status {
    stubCall(stub) { (call) throws(RealtimeError) in
        let fn = try required(fn, "fn")
        let collection = try text(collection, "collection")
        let query = try ddpQuery(selector, options)
        let found = try call.operation { (context) throws(DDPError) in
            try context.find(query, in: collection)
        }
        for one in found {
            show(one.id, one.fields, includesID: query.includesID, to: fn, user)
        }
    }
}

/// Runs the stub of another method. Nothing is sent. At most 50 stubs run inside each other. Inside
/// the stub. Since 0.1.
/// - Parameter params: an EJSON array; NULL for none.
/// - Parameter fn: receives the stub's value or error, inside this call; NULL for nobody.
/// - Returns: RT_OK; RT_ERROR_METHOD if that stub failed; RT_ERROR_INVALID_ARGUMENT;
///   RT_ERROR_INVALID_UTF8; RT_ERROR_PROTOCOL for what is not an EJSON text.
@_cdecl("rt_ddp_stub_call")
public func rt_ddp_stub_call(
    _ stub: rt_ddp_stub?, _ method: UnsafePointer<CChar>?, _ params: UnsafePointer<CChar>?,
    _ fn: rt_ddp_outcome_fn?, _ user: UnsafeMutableRawPointer?
) -> rt_status {
    stubCall(stub) { (call) throws(RealtimeError) in
        let request = DDPRequest(try text(method, "method"), try ejsonArray(params, "params"))
        let outcome = Result { () throws(DDPError) in try call.context.call(request) }
        if let fn { show(outcome, .STUB, to: fn, user) }
        if case .failure(let error) = outcome {
            throw error.realtimeError("the stub of \(request.name.quoted()) has failed")
        }
    }
}

/// Draws a text that the server's method will draw too. Inside the stub. Since 0.1.
/// - Parameter stream: the name of the stream of random values, as the server's method passes it to
///   `DDP.randomStream`; NULL for `default`. Inserts into a collection draw from
///   `/collection/NAME`.
/// - Parameter kind: an `rt_ddp_random`.
/// - Parameter count: how many characters; 0 for the kind's usual number.
/// - Parameter buffer: as in `rt_ddp_get_version`. A text that does not fit is drawn and lost: it
///   is cut.
/// - Returns: as `rt_ddp_get_version`.
@_cdecl("rt_ddp_stub_draw_text")
public func rt_ddp_stub_draw_text(
    _ stub: rt_ddp_stub?, _ stream: UnsafePointer<CChar>?, _ kind: rt_ddp_random, _ count: UInt32,
    _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int, _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    stubCall(stub) { (call) throws(RealtimeError) in
        let stream = try streamName(stream)
        let kind: RT_DDP_RANDOM = try named(kind, "kind", "0, 1 or 2")
        guard count <= 1 << 16 else {
            throw RealtimeError(.invalidArgument, "count is \(count); at most 65,536 are possible")
        }
        let drawn = try call.operation { (context) throws(DDPError) in
            try context.draw(from: stream) { random in
                switch kind {
                case .ID: random.id(count == 0 ? 17 : Int(count))
                case .HEX: random.hexString(count == 0 ? 24 : Int(count))
                case .SECRET: random.secret(count == 0 ? 43 : Int(count))
                }
            }
        }
        try copy(text: drawn ?? "", to: buffer, size, out_length)
    }
}

/// Draws a number, from 0 to below 1, that the server's method will draw too. Inside the stub.
/// Since 0.1.
/// - Parameter stream: as in `rt_ddp_stub_draw_text`.
/// - Parameter out: receives the number.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_UTF8.
@_cdecl("rt_ddp_stub_draw_fraction")
public func rt_ddp_stub_draw_fraction(
    _ stub: rt_ddp_stub?, _ stream: UnsafePointer<CChar>?, _ out: UnsafeMutablePointer<Double>?
) -> rt_status {
    stubCall(stub) { (call) throws(RealtimeError) in
        let stream = try streamName(stream)
        let out = try required(out, "out")
        let fraction = try call.operation { (context) throws(DDPError) in
            try context.draw(from: stream) { $0.fraction() }
        }
        out.pointee = fraction ?? 0
    }
}

private func streamName(_ stream: UnsafePointer<CChar>?) throws(RealtimeError) -> String {
    try optionalText(stream, "stream") ?? DDPStubContext.defaultStream
}

/// The run of a stub.
final class DDPStubCall: Handle {
    static let name = "stub"
    let context: DDPStubContext
    var outcome = DDPStubOutcome.success(.null)
    var owningLoop: Loop? { nil }

    init(_ context: DDPStubContext) { self.context = context }

    func run(
        _ params: [EJSON], _ function: rt_ddp_stub_fn, _ user: UnsafeMutableRawPointer?
    ) -> DDPStubOutcome {
        var texts = ViewTexts()
        let given = texts.add(.array(params))
        withExtendedLifetime(self) {
            let handle = OpaquePointer(Unmanaged.passUnretained(self).toOpaque())
            texts.read { text in function(handle, text(given), given.count, user) }
        }
        return outcome
    }

    /// Works on the documents.
    func operation<Value>(
        _ body: (DDPStubContext) throws(DDPError) -> Value
    ) throws(RealtimeError) -> Value {
        do throws(DDPError) {
            return try body(context)
        } catch {
            throw error.realtimeError("the stub's operation has failed")
        }
    }
}

private func stubCall(
    _ stub: rt_ddp_stub?, _ body: (DDPStubCall) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in try body(DDPStubCall.borrow(stub)) }
}
