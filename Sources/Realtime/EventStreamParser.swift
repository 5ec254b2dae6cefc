internal import Wire

/// The parser of event streams on its own (HTML §9.2.6), for streams that come from elsewhere:
///
///     let parser = EventStreamParser()
///     for try await chunk in chunks {
///         for event in try parser.feed(chunk) { print(event.id, event.event, event.data) }
///     }
///     parser.finish()
///
/// It is for one task at a time.
public final class EventStreamParser {
    /// The most it keeps; 0 means no limit.
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

    /// Called for each comment as it is read, inside `feed`; without it they are skipped.
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

    /// - Parameter lastEventID: what events carry until the stream gives an id.
    /// - Throws: `RealtimeError(.invalidArgument)` for a limit below zero, and for an id with CR,
    ///   LF or NUL.
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

    /// Reads the next bytes of the stream, cut anywhere.
    /// - Returns: the events that they complete, of every type.
    /// - Throws: `RealtimeError(.tooLarge)` above a limit, until `finish` or `reset`; events before
    ///   it are lost with it.
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

    /// The stream ended. What is not finished is forgotten, as the standard wants it; the next
    /// bytes are the first of another stream, whose events carry the last id on.
    public func finish() { try? reader.finish() }

    /// Makes it as new: id and reconnection time are forgotten.
    public func reset() { try? reader.reset() }

    /// For a Last-Event-ID header; "" for none.
    public var lastEventID: String { String(decoding: reader.lastEventID, as: UTF8.self) }

    /// The last one that the stream gave, at most a day.
    public var reconnectionTime: Duration? { reader.reconnectionTime.map { .milliseconds($0) } }
}
