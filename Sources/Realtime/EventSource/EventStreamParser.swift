internal import Wire

/// The parser for event streams (HTML §9.2.6) by itself, for streams from other sources:
///
///     let parser = EventStreamParser()
///     for try await chunk in chunks {
///         for event in try parser.feed(chunk) { print(event.id, event.event, event.data) }
///     }
///     parser.finish()
///
/// Only one task at a time may use it.
public final class EventStreamParser {
    /// The parser's limits; 0 means no limit.
    public struct Limits: Sendable, Hashable {
        // abigen: the options of EventStreamParser.Limits
        /// The longest line of the stream. Comments without a listener, and lines of unknown
        /// fields, do not count. A longer line is a `.tooLarge`, after which nothing more is read.
        /// 0 means no limit.
        public var maxLineBytes = 64 << 20
        /// The most data of one event. More is a `.tooLarge`, after which nothing more is read. 0
        /// means no limit.
        public var maxEventBytes = 64 << 20
        /// The longest id, and the longest type, of an event. A longer one is a `.tooLarge`, after
        /// which nothing more is read. 0 means no limit.
        public var maxNameBytes = 64 << 10
        // abigen: end

        public init() {}
    }

    /// Called for each comment as it is read, inside `feed`. Without it comments are skipped.
    public var onComment: ((String) -> Void)? {
        didSet {
            reader.changeHandlers { handlers in
                handlers.comment = onComment.map { handler in
                    { handler(String(decoding: $0, as: UTF8.self)) }
                }
            }
        }
    }

    private let reader = EventStreamReader()
    private var events: [EventSource.Event] = []

    /// - Parameter lastEventID: the id that events have until the stream sends one.
    /// - Throws: `RealtimeError(.invalidArgument)` for a limit below zero, or an id with CR, LF or
    ///   NUL.
    public init(lastEventID: String = "", limits: Limits = Limits()) throws(RealtimeError) {
        try reader.setLastEventID(Array(lastEventID.utf8))
        var target = reader.limits
        try limits.applyPlain(to: &target)
        try reader.setLimits(target)
        reader.changeHandlers { handlers in
            handlers.event = { [unowned self] event in
                events.append(
                    EventSource.Event(
                        id: String(decoding: event.id, as: UTF8.self),
                        event: String(decoding: event.type, as: UTF8.self),
                        data: String(decoding: event.data, as: UTF8.self), hadID: event.hadID))
            }
        }
    }

    /// Parses the next bytes of the stream, cut anywhere.
    /// - Returns: the events that the bytes complete, of every type.
    /// - Throws: `RealtimeError(.tooLarge)` above a limit, until `finish` or `reset`; events
    ///   completed before it in the same call are lost.
    public func feed(_ bytes: some Collection<UInt8>) throws(RealtimeError) -> [EventSource.Event] {
        let fed = bytes.withContiguousStorageIfAvailable { buffer in
            Result { () throws(RealtimeError) in try reader.feed(UnsafeRawBufferPointer(buffer)) }
        }
        let result =
            fed
            ?? Array(bytes).withUnsafeBytes { buffer in
                Result { () throws(RealtimeError) in try reader.feed(buffer) }
            }
        defer { events = [] }
        try result.get()
        return events
    }

    /// Ends the stream. An unfinished line or event is discarded, as the standard requires. The
    /// next bytes begin another stream; its events keep the last id until it sends another.
    public func finish() { try? reader.finish() }

    /// Resets the parser: clears the id and the reconnection time.
    public func reset() { try? reader.reset() }

    /// The last event id, for a Last-Event-ID header; "" for none.
    public var lastEventID: String { String(decoding: reader.lastEventID, as: UTF8.self) }

    /// The last reconnection time that the stream sent, at most a day.
    public var reconnectionTime: Duration? { reader.reconnectionTime.map { .milliseconds($0) } }
}
