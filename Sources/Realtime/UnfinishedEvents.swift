import Synchronization

/// The ids of events that came and are not done with, in their order: an id is kept once its event
/// and all before it are, whoever takes them.
final class UnfinishedEvents: Sendable {
    private struct Contents {
        var events: [(id: String, isDone: Bool)] = []
        /// The number of the first of them.
        var first = 0
        /// Of iterators that went without asking for another: done with when anybody does.
        var left: [Int] = []
    }

    private let contents = Mutex(Contents())

    /// - Returns: the event's number.
    func came(_ id: String) -> Int {
        contents.withLock { contents in
            contents.events.append((id, isDone: false))
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
            return contents.events[count - 1].id
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

    func took(_ number: Int) { self.number.withLock { $0 = number } }

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
