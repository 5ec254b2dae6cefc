public import CShims
import Documents
import Engine
import Session
import Wire

// Chapter: ddp. Meteor's DDP: methods, subscriptions, and local documents that follow the server.
//
//     rt_ddp *ddp;
//     rt_ddp_feed *feed;
//     rt_ddp_batch *batch;
//     rt_call *call;
//     rt_ddp_new(NULL, "wss://example.org/websocket", &ddp);
//     rt_ddp_connect(ddp, 10000);                       // or _start
//     rt_ddp_subscribe(ddp, "todos", "[]", -1, NULL, NULL, NULL, NULL, &call);
//     rt_call_wait(call, -1);                           // the documents are there
//     rt_ddp_feed_new(ddp, "todos", NULL, NULL, RT_DDP_FEED_DOCUMENTS, &feed);
//     rt_ddp_feed_receive(feed, -1, &batch);            // batch->changes, batch->change_count
//     rt_ddp_call(ddp, "addTodo", "[\"milk\"]", NULL, NULL, NULL, NULL, NULL);
//     rt_ddp_batch_free(batch);
//     rt_call_free(call);
//     rt_ddp_feed_free(feed);
//     rt_ddp_free(ddp);

/// A client of a Meteor server. Life cycle: `rt_ddp_new`, options, callbacks and stubs, then calls
/// and subscriptions, `rt_ddp_start`, `rt_ddp_free`.
///
/// A lost connection is established again; then the user is logged in, subscriptions are repeated,
/// and calls that have no result yet are sent again. Calls and subscriptions may be made at any
/// time, also without a connection: they wait for one.
///
/// Values are EJSON texts (JSON with `{"$date":…}` and the like), in UTF-8, at most 128 levels
/// deep. Types that the server has registered need no support of the library: their values are
/// texts such as `{"$type":"Money","$value":5}`.
///
/// The first use of a client other than options, callbacks and stubs takes the options over. Since
/// 0.1.
public typealias rt_ddp = OpaquePointer

/// What a stub uses. It must not be used after the stub has returned. Since 0.1.
public typealias rt_ddp_stub = OpaquePointer

/// The status of a client. Since 0.1.
public typealias rt_ddp_status = Int32

/// Values of `rt_ddp_status`. Since 0.1.
public enum RT_DDP: Int32 {
    /// No connection is wanted, or an attempt waits for the network or for the foreground.
    case OFFLINE = 0
    /// A connection is being opened, or the server's confirmation is awaited.
    case CONNECTING = 1
    /// The server has confirmed the connection.
    case CONNECTED = 2
    /// The connection was lost or could not be established; the next attempt is awaited.
    case WAITING = 3
    /// The client gave up: the server speaks no known version or sends more than
    /// `max_document_bytes`, a live query takes too long, or reconnecting is switched off.
    case FAILED = 4
}

/// Where an error of a call or subscription comes from. Since 0.1.
public typealias rt_ddp_error_kind = Int32

/// Values of `rt_ddp_error_kind`. Since 0.1.
public enum RT_DDP_ERROR: Int32 {
    /// The server sent it.
    case SERVER = 0
    /// A stub failed, or an operation in it.
    case STUB = 1
    /// A call that must not be repeated was sent, and the connection was lost before its result. It
    /// may have run on the server.
    case INVOCATION_FAILED = 2
    /// The connection has ended for good.
    case DISCONNECTED = 3
    /// The time limit of the call has passed. It may have run on the server.
    case TIMEOUT = 4
    /// The client was freed.
    case CLOSED = 5
}

/// The stages of a call, in their order. Since 0.1.
public typealias rt_ddp_stage = Int32

/// Values of `rt_ddp_stage`. Since 0.1.
public enum RT_DDP_STAGE: Int32 {
    /// Its stub has run, inside the function that makes the call; also without a stub, with `null`.
    case STUB = 0
    /// The result has arrived. The documents that the call wrote may follow.
    case RESULT = 1
    /// The call is done, and the documents that it wrote are there. Reported once.
    case COMPLETED = 2
}

/// What happens to a subscription. Since 0.1.
public typealias rt_ddp_subscription = Int32

/// Values of `rt_ddp_subscription`. Since 0.1.
public enum RT_DDP_SUBSCRIPTION: Int32 {
    /// The initial documents are there. Reported once.
    case READY = 0
    /// The server has ended it. Nothing follows.
    case STOPPED = 1
}

/// What happens to a document. Since 0.1.
public typealias rt_ddp_change_kind = Int32

/// Values of `rt_ddp_change_kind`. Since 0.1.
public enum RT_DDP_CHANGE: Int32 {
    /// It is new.
    case ADDED = 0
    /// Fields have changed.
    case CHANGED = 1
    /// It is gone.
    case REMOVED = 2
    /// It has another place in the result of a live query.
    case MOVED = 3
}

/// What happens to the user's account. Since 0.1.
public typealias rt_ddp_account = Int32

/// Values of `rt_ddp_account`. Since 0.1.
public enum RT_DDP_ACCOUNT: Int32 {
    /// Another user is logged in, or nobody any more.
    case USER = 0
    /// A login has begun or ended.
    case LOGGING_IN = 1
    /// The program shall keep `token` where `rt_ddp_on_load_token` finds it.
    case STORE = 2
    /// The program shall forget the token that it kept.
    case FORGET = 3
    /// The server refused to log the user in again.
    case RESUME_FAILED = 4
}

/// How the ids of new documents are drawn. Since 0.1.
public typealias rt_ddp_ids = Int32

/// Values of `rt_ddp_ids`. Since 0.1.
public enum RT_DDP_IDS: Int32 {
    /// Texts of 17 letters and digits that are easy to read.
    case STRINGS = 0
    /// ObjectIDs of MongoDB.
    case OBJECT_IDS = 1
}

/// What `rt_ddp_stub_draw_text` draws. Since 0.1.
public typealias rt_ddp_random = Int32

/// Values of `rt_ddp_random`. Since 0.1.
public enum RT_DDP_RANDOM: Int32 {
    /// An id as Meteor gives to documents, usually 17 letters and digits that are easy to read.
    case ID = 0
    /// Hexadecimal digits, usually 24, as for an ObjectID.
    case HEX = 1
    /// Letters, digits, `-` and `_`, usually 43. It is not secret: it follows from the call's seed.
    case SECRET = 2
}

/// Receives a stage of a call. Since 0.1.
public typealias rt_ddp_outcome_fn =
    @convention(c) (
        _ outcome: UnsafePointer<rt_ddp_outcome>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Creates a client. Nothing is sent before `rt_ddp_start`. Any thread. Since 0.1.
/// - Parameter loop: the client's loop, which it keeps alive. NULL means the library's own loop, as
///   for `rt_websocket_new`.
/// - Parameter url: of the server: `https://host/path`, `http`, `wss` or `ws`; `/websocket` is
///   appended unless the path ends so. Copied.
/// - Parameter out: receives the client; free it with `rt_ddp_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_URL; RT_ERROR_UNSUPPORTED_SCHEME;
///   RT_ERROR_INVALID_UTF8; RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_ddp_new")
public func rt_ddp_new(
    _ loop: rt_loop?, _ url: UnsafePointer<CChar>?, _ out: UnsafeMutablePointer<rt_ddp?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let url = try text(url, "url")
        let out = try required(out, "out")
        out.pointee = try onLoop(loop) { loop throws(RealtimeError) in
            DDPConnection.export(try DDPConnection(url: url, on: loop))
        }
    }
}

/// Frees the client and ends its connection without a callback. Over a WebSocket, earlier calls are
/// sent, as far as the system takes them at once; unfinished ones are forgotten, and may run at the
/// server. The file for the documents (`rt_ddp_set_document_file`) is complete when this returns.
/// NULL is accepted. Any thread, also inside its callbacks. Since 0.1.
@_cdecl("rt_ddp_free")
public func rt_ddp_free(_ ddp: rt_ddp?) {
    DDPConnection.release(ddp) {
        $0.close()
        OwnLoop.leave($0.loop)
    }
}

/// Runs a call on a client.
func ddpCall(
    _ ddp: rt_ddp?, _ body: (DDPConnection) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in
        try DDPConnection.borrowing(ddp) { (client) throws(RealtimeError) in
            try client.loop.checkNotForked()
            try body(client)
        }
    }
}

/// Sets handlers of a client.
func ddpHandlers(_ ddp: rt_ddp?, _ body: (inout DDPHandlers) -> Void) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in try client.setHandlers(body) }
}

/// An EJSON text from C.
func ejson(_ pointer: UnsafePointer<CChar>?, _ name: String) throws(RealtimeError) -> EJSON {
    let given = try text(pointer, name)
    do throws(RealtimeError) {
        return try EJSON(parsing: given)
    } catch {
        throw RealtimeError(error.code, "\(name) is not an EJSON text: \(error.message)")
    }
}

func documentID(_ value: EJSON, _ name: String) throws(RealtimeError) -> DocumentID {
    guard let id = DocumentID(value) else {
        throw RealtimeError(.invalidArgument, "\(name) is not a string and not an ObjectID")
    }
    return id
}

/// An EJSON array from C; NULL means an empty one.
func ejsonArray(
    _ pointer: UnsafePointer<CChar>?, _ name: String
) throws(RealtimeError) -> [EJSON] {
    guard pointer != nil else { return [] }
    guard case .array(let values) = try ejson(pointer, name) else {
        throw RealtimeError(.invalidArgument, "\(name) is not an array")
    }
    return values
}

/// A query from C. NULL options are those of a query without any.
func ddpQuery(
    _ selector: UnsafePointer<CChar>?, _ options: UnsafePointer<CChar>?
) throws(RealtimeError) -> Query {
    let selector = selector == nil ? EJSON.object(EJSONObject()) : try ejson(selector, "selector")
    let options = options == nil ? EJSON.null : try ejson(options, "options")
    return try Query(selector: selector, options: options)
}
