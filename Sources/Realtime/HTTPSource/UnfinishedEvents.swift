import Synchronization

/// The ids of delivered events that are not yet processed, in order. An id is stored once its event
/// and all before it are processed, whichever handlers and iterators took them.
final class UnfinishedEvents: Sendable {
    fileprivate struct Entry {
        /// nil if it must not be stored.
        var id: String?
        /// How many handlers and iterators have yet to process the event; one more while the loop
        /// delivers it.
        var pending: Int
    }

    fileprivate struct Contents {
        var events: [Entry] = []
        /// The number of the first event in `events`.
        var first = 0
        /// The number of the first event that nobody has taken.
        var firstUntaken = 0
        /// The id of the last event delivered.
        var lastID: String?
        /// The number of the event that the loop delivers now.
        var current: Int?
        /// Events that ended iterators held. They count as processed when any iterator asks for
        /// another event.
        var abandoned: [Int] = []
        /// The events whose handlers run, by thread.
        var running: [UInt: Int] = [:]
    }

    private let contents = Mutex(Contents())
    private let store: @Sendable (String) -> Void

    /// - Parameter store: called with each id that may now be stored.
    init(_ store: @escaping @Sendable (String) -> Void) { self.store = store }

    // MARK: The loop's thread

    /// A handler or the iteration gets an event: the same one as before until `endDelivery`.
    /// - Returns: the event's number.
    func add(_ id: String) -> Int {
        settling { contents in
            if let number = contents.current, number >= contents.first {
                contents.events[number - contents.first].pending += 1
                return number
            }
            contents.append(id, pending: 2)
            let number = contents.first + contents.events.count - 1
            contents.current = number
            return number
        }
    }

    /// All handlers and iterations have got the event, unless nobody wants it.
    func endDelivery() { settling { $0.endDelivery() } }

    /// - Parameter lastID: the id of the last event, which perhaps nobody got.
    func noteLast(_ lastID: String) { settling { $0.append(lastID, pending: 0) } }

    // MARK: Any thread

    /// Runs the handler of an event.
    func run(_ number: Int, on thread: UInt, _ handler: () -> Void) {
        contents.withLock { contents in
            contents.take(number)
            contents.running[thread] = number
        }
        handler()
        settling { contents in
            // Unless the handler has closed the source.
            if contents.running.removeValue(forKey: thread) != nil { contents.finish(number) }
        }
    }

    /// The source is closed: an event whose handler calls this on the same thread is processed.
    /// One that the loop delivers now is not, because its other handlers may miss it.
    func close(on thread: UInt) {
        settling { contents in
            if let number = contents.running.removeValue(forKey: thread) {
                contents.finish(number, entirely: true)
            }
        }
    }

    /// Called when the iterator that took this event, if any, asks for another.
    func finish(_ number: Int?) {
        settling { contents in
            for done in contents.abandoned + [number].compactMap(\.self) { contents.finish(done) }
            contents.abandoned = []
        }
    }

    func take(_ number: Int) { contents.withLock { $0.take(number) } }

    /// Drops the ids of events that were taken: they are not stored.
    func forget() {
        contents.withLock { contents in
            let taken = max(0, contents.firstUntaken - contents.first)
            for index in contents.events.indices.prefix(taken) { contents.events[index].id = nil }
        }
    }

    func abandon(_ number: Int) { contents.withLock { $0.abandoned.append(number) } }

    /// Stores the last id before which all events are processed.
    private func settling<Result: Sendable>(
        _ change: (inout Contents) -> Result
    ) -> Result {
        let (result, id) = contents.withLock { contents in
            let result = change(&contents)
            return (result, contents.removeProcessed())
        }
        if let id { store(id) }
        return result
    }
}

extension UnfinishedEvents.Contents {
    fileprivate mutating func append(_ id: String, pending: Int) {
        // An unchanged id is stored, or dropped, with the event that first had it.
        let isNew = lastID.map { !$0.utf8.elementsEqual(id.utf8) } ?? true
        guard isNew || pending > 0 else { return }
        lastID = id
        events.append(UnfinishedEvents.Entry(id: isNew ? id : nil, pending: pending))
    }

    fileprivate mutating func endDelivery() {
        guard let number = current else { return }
        current = nil
        finish(number)
    }

    /// - Parameter entirely: whether nobody else will process the event.
    fileprivate mutating func finish(_ number: Int, entirely: Bool = false) {
        guard number >= first else { return }
        let pending = events[number - first].pending
        events[number - first].pending = entirely ? 0 : max(0, pending - 1)
    }

    fileprivate mutating func take(_ number: Int) { firstUntaken = max(firstUntaken, number + 1) }

    /// - Returns: the last id of the events that are processed, which are removed.
    fileprivate mutating func removeProcessed() -> String? {
        let count = events.prefix { $0.pending == 0 }.count
        guard count > 0 else { return nil }
        defer {
            events.removeFirst(count)
            first += count
        }
        return events[..<count].last { $0.id != nil }?.id
    }
}

/// An iterator that takes events, with all its copies.
final class EventTaker: Sendable {
    private let events: UnfinishedEvents?
    private let number = Mutex<Int?>(nil)

    /// - Parameter events: nil if no ids are stored.
    init(_ events: UnfinishedEvents?) { self.events = events }

    deinit {
        if let number = number.withLock({ $0 }) { events?.abandon(number) }
    }

    func take(_ number: Int) {
        events?.take(number)
        self.number.withLock { $0 = number }
    }

    /// Marks the event taken last as processed.
    func finish() {
        events?.finish(
            number.withLock { exchange(&$0, with: nil) })
    }
}
