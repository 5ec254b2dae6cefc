import Synchronization

/// The ids of events that came and are not done with, in their order: an id is kept once its event
/// and all before it are, whoever takes them.
final class UnfinishedEvents: Sendable {
    private struct Contents {
        /// Without an id when it is not to be kept.
        var events: [(id: String?, isDone: Bool)] = []
        /// The number of the first of them.
        var first = 0
        /// The number of the first that nobody has taken.
        var untaken = 0
        /// Of the last that came.
        var lastID: String?
        /// Of iterators that went without asking for another: done with when anybody does.
        var left: [Int] = []
    }

    private let contents = Mutex(Contents())

    /// - Returns: the event's number.
    func came(_ id: String) -> Int {
        contents.withLock { contents in
            // What the event before brought is kept, or forgotten, with that.
            let isNew = contents.lastID.map { !$0.utf8.elementsEqual(id.utf8) } ?? true
            contents.lastID = id
            contents.events.append((isNew ? id : nil, isDone: false))
            return contents.first + contents.events.count - 1
        }
    }

    /// Whoever took this event, if any, asks for another.
    /// - Returns: the id that may be kept from now on.
    func finish(_ number: Int?) -> String? {
        contents.withLock { contents in
            for done in contents.left + [number].compactMap(\.self) {
                contents.events[done - contents.first].isDone = true
            }
            contents.left = []
            let count = contents.events.prefix(while: \.isDone).count
            guard count > 0 else { return nil }
            defer {
                contents.events.removeFirst(count)
                contents.first += count
            }
            return contents.events[..<count].last { $0.id != nil }?.id
        }
    }

    func took(_ number: Int) {
        contents.withLock { $0.untaken = max($0.untaken, number + 1) }
    }

    /// The ids of those that were taken are not kept any more.
    func forget() {
        contents.withLock { contents in
            for index in 0..<(contents.untaken - contents.first) {
                contents.events[index].id = nil
            }
        }
    }

    func leave(_ number: Int) { contents.withLock { $0.left.append(number) } }
}

/// Who takes events: an iterator, with all copies of it.
final class EventTaker: Sendable {
    private let events: UnfinishedEvents?
    private let number = Mutex<Int?>(nil)

    /// - Parameter events: nil when no ids are kept.
    init(_ events: UnfinishedEvents?) { self.events = events }

    deinit {
        if let number = number.withLock({ $0 }) { events?.leave(number) }
    }

    func took(_ number: Int) {
        events?.took(number)
        self.number.withLock { $0 = number }
    }

    /// The event that was taken last is done with.
    /// - Returns: the id that may be kept from now on.
    func finish() -> String? {
        events?.finish(
            number.withLock { number in
                defer { number = nil }
                return number
            })
    }
}
