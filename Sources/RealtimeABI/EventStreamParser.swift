import Wire

// Chapter: event stream parser. The parser of event streams on its own (HTML §9.2.6), for streams
// that come from elsewhere.

/// A parser of event streams: it is fed bytes, cut anywhere, and calls back for what they complete,
/// inside of the call that feeds it. It belongs to no loop, and to one thread at a time. Since 0.1.
public typealias rt_eventstream_parser = OpaquePointer

/// Makes a parser. Any thread. Since 0.1.
/// - Parameter out: receives it; to be freed with `rt_eventstream_parser_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_eventstream_parser_new")
public func rt_eventstream_parser_new(
    _ out: UnsafeMutablePointer<rt_eventstream_parser?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        try required(out, "out").pointee = EventStreamReader.export(EventStreamReader())
    }
}

/// Gives a parser back. NULL is accepted. In a callback of its own too: then it is the last one.
/// Since 0.1.
@_cdecl("rt_eventstream_parser_free")
public func rt_eventstream_parser_free(_ parser: rt_eventstream_parser?) {
    EventStreamReader.release(parser) { $0.close() }
}

/// Sets the callback for events. NULL takes it away. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_eventstream_parser_on_event")
public func rt_eventstream_parser_on_event(
    _ parser: rt_eventstream_parser?, _ fn: rt_event_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return reader(parser) {
        $0.changeHandlers { handlers in
            handlers.event = box.function.map { function in { $0.show(to: function, box.user) } }
        }
    }
}

/// Sets the callback for comments, each as it is read: valid UTF-8 with a NUL behind it. Without
/// one comments are skipped, however long they are. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_eventstream_parser_on_comment")
public func rt_eventstream_parser_on_comment(
    _ parser: rt_eventstream_parser?, _ fn: rt_eventsource_comment_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return reader(parser) {
        $0.changeHandlers { handlers in
            handlers.comment = box.function.map { function in
                { function(characters($0), $0.count, box.user) }
            }
        }
    }
}

/// Sets the callback for reconnection times, each at the end of its line. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_eventstream_parser_on_retry")
public func rt_eventstream_parser_on_retry(
    _ parser: rt_eventstream_parser?, _ fn: rt_eventsource_retry_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return reader(parser) {
        $0.changeHandlers { handlers in
            handlers.retry = box.function.map { function in { function($0, box.user) } }
        }
    }
}

/// The id that events carry until the stream gives one. Default "". Before the first bytes, or
/// after `rt_eventstream_parser_reset`. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for an id with CR or LF; RT_ERROR_STATE.
@_cdecl("rt_eventstream_parser_set_last_event_id")
public func rt_eventstream_parser_set_last_event_id(
    _ parser: rt_eventstream_parser?, _ id: UnsafePointer<CChar>?
) -> rt_status {
    reader(parser) { (parser) throws(RealtimeError) in
        try parser.setLastEventID(Array(text(id, "id").utf8))
    }
}

/// Reads the next bytes of the stream. All callbacks for what they complete come inside this call;
/// none waits for a byte behind the one that ends a line. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_TOO_LARGE above a limit, until `rt_eventstream_parser_finish` or
///   `rt_eventstream_parser_reset`; RT_ERROR_REENTRANT in a callback of its own;
///   RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_eventstream_parser_feed")
public func rt_eventstream_parser_feed(
    _ parser: rt_eventstream_parser?, _ data: UnsafePointer<UInt8>?, _ length: Int
) -> rt_status {
    reader(parser) { (parser) throws(RealtimeError) in try parser.feed(bytes(data, length, "data"))
    }
}

/// The stream ended. A line or event that is not finished is forgotten, as the standard wants it;
/// the next bytes are the first of another stream, whose events carry the last id on. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_REENTRANT in a callback of its own; RT_ERROR_INVALID_ARGUMENT for
///   NULL.
@_cdecl("rt_eventstream_parser_finish")
public func rt_eventstream_parser_finish(_ parser: rt_eventstream_parser?) -> rt_status {
    reader(parser) { (parser) throws(RealtimeError) in try parser.finish() }
}

/// Makes it as new: id and reconnection time are forgotten, options and callbacks stay. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_REENTRANT in a callback of its own; RT_ERROR_INVALID_ARGUMENT for
///   NULL.
@_cdecl("rt_eventstream_parser_reset")
public func rt_eventstream_parser_reset(_ parser: rt_eventstream_parser?) -> rt_status {
    reader(parser) { (parser) throws(RealtimeError) in try parser.reset() }
}

/// The last event id, for a Last-Event-ID header; "" for none. It is what the stream had, byte for
/// byte, which need not be UTF-8. Since 0.1.
/// - Parameter buffer: receives the id and a NUL, cut to `size` bytes; may be NULL when `size` is
///   0.
/// - Parameter out_length: receives the whole id's length.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_eventstream_parser_get_last_event_id")
public func rt_eventstream_parser_get_last_event_id(
    _ parser: rt_eventstream_parser?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    reader(parser) { (parser) throws(RealtimeError) in
        try copy(parser.lastEventID, to: buffer, size, out_length)
    }
}

/// The last reconnection time that the stream gave. Since 0.1.
/// - Returns: milliseconds; -1 before the first, and for NULL.
@_cdecl("rt_eventstream_parser_get_reconnection_time_ms")
public func rt_eventstream_parser_get_reconnection_time_ms(
    _ parser: rt_eventstream_parser?
) -> Int64 {
    var time: Int64 = -1
    _ = reader(parser) { time = $0.reconnectionTime ?? -1 }
    return time
}

/// Runs a change of a parser's limits, all of which are taken with the first bytes.
func eventstreamParserOptions(
    _ parser: rt_eventstream_parser?, once: Bool = true,
    _ body: (inout EventStreamParser.Limits) throws(RealtimeError) -> Void
) -> rt_status {
    reader(parser) { (parser) throws(RealtimeError) in
        var limits = parser.limits
        try body(&limits)
        try parser.setLimits(limits)
    }
}

/// Runs a call on a parser, which a callback may free meanwhile.
private func reader(
    _ parser: rt_eventstream_parser?, _ body: (EventStreamReader) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in try body(EventStreamReader.borrow(parser)) }
}
