/// Parses an event stream that the caller received by its own means. It calls a handler for each
/// event, comment and reconnection time that a piece of the stream completes. One thread at a time.
package final class EventStreamReader {
    package struct Handlers {
        package var event: ((StreamEvent) -> Void)?
        package var comment: ((UnsafeRawBufferPointer) -> Void)?
        package var retry: ((_ milliseconds: Int64) -> Void)?
    }

    private var handlers = Handlers()

    package private(set) var limits = EventStreamParser.Limits()
    private var initialID: [UInt8] = []
    private var parser = EventStreamParser()
    /// Bytes have arrived since the reader was created or reset.
    private var hasBegun = false
    private var isFeeding = false
    private var isOver = false

    package init() {}

    /// Changes handlers. The old ones are released after the new ones are in place, because the
    /// destroy function of their user data may call this reader.
    package func changeHandlers(_ change: (inout Handlers) -> Void) {
        var new = handlers
        change(&new)
        let old = exchange(&handlers, with: new)
        withExtendedLifetime(old) {}
    }

    package var lastEventID: [UInt8] { parser.lastEventID }
    /// In milliseconds; nil until the stream has set one.
    package var reconnectionTime: Int64? { parser.reconnectionTime }

    /// Sets the limits. Allowed only before the stream begins.
    package func setLimits(_ limits: EventStreamParser.Limits) throws(RealtimeError) {
        try checkNotBegun()
        self.limits = limits
        begin()
    }

    /// Sets the id that events carry until the stream gives one. Allowed only before the stream
    /// begins.
    package func setLastEventID(_ id: [UInt8]) throws(RealtimeError) {
        try checkNotBegun()
        guard !id.contains(0), !id.contains(0x0A), !id.contains(0x0D) else {
            throw RealtimeError(.invalidArgument, "the last event id has a CR, LF or NUL")
        }
        initialID = id
        begin()
    }

    /// Parses the next piece of the stream, cut anywhere, and calls the handlers.
    package func feed(_ bytes: UnsafeRawBufferPointer) throws(RealtimeError) {
        try checkNotFeeding()
        hasBegun = true
        isFeeding = true
        defer { isFeeding = false }
        parser.reportsComments = handlers.comment != nil
        var used = 0
        while !isOver {
            switch try parser.next(bytes, &used) {
            case .needMoreBytes: return
            case .event(let event): handlers.event?(event)
            case .comment(let text): handlers.comment?(text)
            case .retry(let milliseconds): handlers.retry?(milliseconds)
            }
        }
    }

    /// Ends the stream and discards what is incomplete. Another stream may follow; its events start
    /// with the last id.
    package func finish() throws(RealtimeError) {
        try checkNotFeeding()
        parser.endBody()
    }

    /// Discards everything except the limits, the handlers, and the id that was set.
    package func reset() throws(RealtimeError) {
        try checkNotFeeding()
        begin()
        hasBegun = false
    }

    /// Stops all callbacks, even in the middle of a piece.
    package func close() {
        isOver = true
        guard !isFeeding else { return }
        changeHandlers { $0 = Handlers() }
    }

    private func begin() {
        parser = EventStreamParser(limits: limits, lastEventID: initialID)
    }

    private func checkNotFeeding() throws(RealtimeError) {
        if isFeeding {
            throw RealtimeError(.reentrant, "an event stream's parser was used in its callback")
        }
    }

    private func checkNotBegun() throws(RealtimeError) {
        try checkNotFeeding()
        if hasBegun {
            throw RealtimeError(
                .state, "an option must be set before the stream begins, or after a reset")
        }
    }
}
