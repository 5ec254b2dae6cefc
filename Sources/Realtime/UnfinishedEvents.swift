import Synchronization

/// The ids of delivered events that are not yet processed, in order. An id is stored once its event
/// and all before it are processed, whichever iterators took them.
final class UnfinishedEvents: Sendable {
    private struct Contents {
        /// The id is nil if it must not be stored.
        var events: [(id: String?, isDone: Bool)] = []
        /// The number of the first event in `events`.
        var first = 0
        /// The number of the first event that no iterator has taken.
        var firstUntaken = 0
        /// The id of the last event delivered.
        var lastID: String?
        /// Events that ended iterators held. They count as processed when any iterator asks for
        /// another event.
        var abandoned: [Int] = []
    }

    private let contents = Mutex(Contents())

    /// - Returns: the event's number.
    func add(_ id: String) -> Int {
        contents.withLock { contents in
            // An unchanged id is stored, or dropped, with the event that first had it.
            let isNew = contents.lastID.map { !$0.utf8.elementsEqual(id.utf8) } ?? true
            contents.lastID = id
            contents.events.append((isNew ? id : nil, isDone: false))
            return contents.first + contents.events.count - 1
        }
    }

    /// Called when the iterator that took this event, if any, asks for another.
    /// - Returns: the id that may now be stored.
    func finish(_ number: Int?) -> String? {
        contents.withLock { contents in
            for done in contents.abandoned + [number].compactMap(\.self) {
                contents.events[done - contents.first].isDone = true
            }
            contents.abandoned = []
            let count = contents.events.prefix(while: \.isDone).count
            guard count > 0 else { return nil }
            defer {
                contents.events.removeFirst(count)
                contents.first += count
            }
            return contents.events[..<count].last { $0.id != nil }?.id
        }
    }

    func take(_ number: Int) {
        contents.withLock { $0.firstUntaken = max($0.firstUntaken, number + 1) }
    }

    /// Drops the ids of events that were taken: they are not stored.
    func forget() {
        contents.withLock { contents in
            for index in 0..<(contents.firstUntaken - contents.first) {
                contents.events[index].id = nil
            }
        }
    }

    func abandon(_ number: Int) { contents.withLock { $0.abandoned.append(number) } }
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
    /// - Returns: the id that may now be stored.
    func finish() -> String? {
        events?.finish(
            number.withLock { number in
                defer { number = nil }
                return number
            })
    }
}
