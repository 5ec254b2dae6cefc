import Wire

// Chapter: event stream parser. The parser for event streams (HTML §9.2.6) by itself, for streams
// from other sources.
//
//     void on_event(const rt_event *event, void *user);
//     const uint8_t data[] = "data: hello\n\n";
//     rt_eventstream_parser *parser;
//     rt_eventstream_parser_new(&parser);
//     rt_eventstream_parser_on_event(parser, on_event, NULL, NULL);
//     rt_eventstream_parser_feed(parser, data, sizeof data - 1);  // calls on_event
//     rt_eventstream_parser_finish(parser);
//     rt_eventstream_parser_free(parser);

/// A parser for event streams. It accepts bytes in pieces of any size, and calls its callbacks
/// inside the call that passes the bytes. It belongs to no loop. Only one thread at a time may use
/// it. Since 0.1.
public typealias rt_eventstream_parser = OpaquePointer

/// Creates a parser. Any thread. Since 0.1.
/// - Parameter out: receives the parser; free it with `rt_eventstream_parser_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_eventstream_parser_new")
public func rt_eventstream_parser_new(
    _ out: UnsafeMutablePointer<rt_eventstream_parser?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        try required(out, "out").pointee = EventStreamReader.export(EventStreamReader())
    }
}

/// Frees a parser. It may be called inside one of the parser's callbacks, which then is the last
/// one. NULL is accepted. Since 0.1.
@_cdecl("rt_eventstream_parser_free")
public func rt_eventstream_parser_free(_ parser: rt_eventstream_parser?) {
    EventStreamReader.release(parser) { $0.close() }
}

/// - Callbacks: eventstream_parser, eventstreamParserHandlers
extension EventStreamReader.Handlers {
    /// Sets the callback for events. NULL removes it. Since 0.1.
    mutating func onEvent(_ box: CallbackBox<rt_event_fn>) {
        event = box.function.map { function in { $0.show(to: function, box.user) } }
    }

    /// Sets the callback for comments, which are valid UTF-8, followed by a NUL. It is called as
    /// each comment is read. Without it, comments of any length are skipped. Since 0.1.
    mutating func onComment(_ box: CallbackBox<rt_eventsource_comment_fn>) {
        comment = box.function.map { function in
            { function(characters($0), $0.count, box.user) }
        }
    }

    /// Sets the callback for reconnection times. It is called at the end of each `retry` line.
    /// Since 0.1.
    mutating func onRetry(_ box: CallbackBox<rt_eventsource_retry_fn>) {
        retry = box.function.map { function in { function($0, box.user) } }
    }
}

/// Sets the id that events have until the stream sends one. Default: "". Before the first bytes, or
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

/// Parses the next bytes of the stream. All callbacks for what these bytes complete are called
/// inside this call; an event never waits for a byte after its last line end. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_TOO_LARGE above a limit, until `rt_eventstream_parser_finish` or
///   `rt_eventstream_parser_reset`; RT_ERROR_REENTRANT inside one of its callbacks;
///   RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_eventstream_parser_feed")
public func rt_eventstream_parser_feed(
    _ parser: rt_eventstream_parser?, _ data: UnsafePointer<UInt8>?, _ length: Int
) -> rt_status {
    reader(parser) { (parser) throws(RealtimeError) in try parser.feed(bytes(data, length, "data"))
    }
}

/// Ends the stream. An unfinished line or event is discarded, as the standard requires. The next
/// bytes begin another stream; its events keep the last id until it sends another. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_REENTRANT inside one of its callbacks; RT_ERROR_INVALID_ARGUMENT for
///   NULL.
@_cdecl("rt_eventstream_parser_finish")
public func rt_eventstream_parser_finish(_ parser: rt_eventstream_parser?) -> rt_status {
    reader(parser) { (parser) throws(RealtimeError) in try parser.finish() }
}

/// Resets the parser: clears the id and the reconnection time, and keeps options and callbacks.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_REENTRANT inside one of its callbacks; RT_ERROR_INVALID_ARGUMENT for
///   NULL.
@_cdecl("rt_eventstream_parser_reset")
public func rt_eventstream_parser_reset(_ parser: rt_eventstream_parser?) -> rt_status {
    reader(parser) { (parser) throws(RealtimeError) in try parser.reset() }
}

/// Copies the last event id, for a Last-Event-ID header; "" for none. It has the stream's original
/// bytes, which may not be UTF-8. Since 0.1.
/// - Parameter buffer: receives the id and a NUL, cut to `size` bytes; may be NULL if `size` is 0.
/// - Parameter out_length: receives the length of the whole id.
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

/// The last reconnection time that the stream sent. Since 0.1.
/// - Returns: milliseconds; -1 before the first, and for NULL.
@_cdecl("rt_eventstream_parser_get_reconnection_time_ms")
public func rt_eventstream_parser_get_reconnection_time_ms(
    _ parser: rt_eventstream_parser?
) -> Int64 {
    var time: Int64 = -1
    _ = reader(parser) { time = $0.reconnectionTime ?? -1 }
    return time
}

/// Changes a parser's limits, which take effect with the first bytes.
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

/// Sets a parser's handlers.
func eventstreamParserHandlers(
    _ parser: rt_eventstream_parser?, _ body: (inout EventStreamReader.Handlers) -> Void
) -> rt_status {
    reader(parser) { $0.changeHandlers(body) }
}

/// Runs a call on a parser, which a callback may free meanwhile.
private func reader(
    _ parser: rt_eventstream_parser?, _ body: (EventStreamReader) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in try body(EventStreamReader.borrow(parser)) }
}
