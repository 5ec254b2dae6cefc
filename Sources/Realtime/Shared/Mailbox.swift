internal import CShims
internal import Engine
internal import Session
import Synchronization
internal import Wire

/// How a mailbox ends for the tasks that wait for messages.
enum MailboxEnd: Sendable {
    /// In order: the iteration ends.
    case normal
    case failed(any Error)
}

/// An element of a mailbox.
protocol MailboxElement: Sendable {
    associatedtype Store: MailboxStore = ElementStore<Self> where Store.Element == Self

    /// Its size in bytes.
    var count: Int { get }
}

/// The elements of a mailbox in order: first they are added, then they are taken.
protocol MailboxStore: Sendable {
    associatedtype Element

    init()
    var count: Int { get }
    /// The sum of their sizes.
    var bytes: Int { get }
    mutating func append(_ element: consuming Element)
    /// Nothing will be added until all are taken.
    mutating func beginTaking()
    mutating func popFirst() -> Element?
}

struct ElementStore<Element: MailboxElement>: MailboxStore {
    /// Once taking has begun, the next one is the last, so that it can be moved out.
    private var elements: [Element] = []
    private(set) var bytes = 0

    init() {}

    var count: Int { elements.count }

    mutating func append(_ element: consuming Element) {
        bytes += element.count
        elements.append(element)
    }

    mutating func beginTaking() { elements.reverse() }

    mutating func popFirst() -> Element? {
        guard let element = elements.popLast() else { return nil }
        bytes -= element.count
        return element
    }
}

/// A bounded queue of messages, or pieces of them, from the loop's thread to waiting tasks.
///
/// The loop and the tasks seldom meet: a task fetches everything that has arrived at once, and then
/// takes one message after the other without the loop's lock. If both locks are needed, that of
/// `fetched` comes first.
final class Mailbox<Element: MailboxElement>: Sendable {
    typealias Waiter = CheckedContinuation<Void, any Error>

    /// What no task has fetched yet.
    struct Arrived: ~Copyable {
        var messages = Element.Store()
        /// The fetched messages that are not taken yet, and their bytes. These numbers may be out
        /// of date; then they are too large.
        var fetched = (count: 0, bytes: 0)
        var end: MailboxEnd?
        var waiting: [(ticket: UInt64, waiter: Waiter)] = []
        /// Whether waiting tasks will be woken at the end of the turn.
        var willWake = false
        /// The waits that are about to begin, with the error of those that have ended already.
        var starting: [UInt64: (any Error)?] = [:]
        var lastTicket: UInt64 = 0
        /// How many iterators there are.
        var readers = 0
    }

    /// What was fetched.
    private struct Fetched: ~Copyable {
        var messages = Element.Store()
        /// How many times a task has looked for a message.
        var looks: UInt64 = 0
        /// When the actor's other work last had a turn, as far as this is known.
        var turnBegan: Instant?
        var isTurnOver = false
    }

    private let arrived = Mutex(Arrived())
    private let fetched = Mutex(Fetched())
    // Copies of numbers in `fetched`, for the loop's thread.
    private let fetchedCount = Atomic<Int>(0)
    private let fetchedBytes = Atomic<Int>(0)
    private let isFull = Atomic<Bool>(false)
    private let maxMessages: Int
    private let maxBytes: Int
    private let turnLength: Duration
    /// Wakes tasks once for all messages of a turn; nil to wake them at once.
    private let turnEnd: TurnEnd?

    /// - Parameters:
    ///   - loop: whose thread puts the messages; nil for any thread.
    ///   - turn: how long a task takes messages before the other work of its actor has a turn.
    init(
        _ maxMessages: Int, _ maxBytes: Int, on loop: Engine.Loop? = nil,
        turn: Duration = .milliseconds(1)
    ) {
        self.maxMessages = maxMessages
        self.maxBytes = maxBytes
        turnLength = turn
        turnEnd = loop.map { TurnEnd(on: $0) }
    }

    /// Whether it filled up and has not been emptied enough since.
    var isPaused: Bool { isFull.load(ordering: .acquiring) }

    /// The number of waiting messages.
    var count: Int {
        fetched.withLock { $0.messages.count + arrived.withLock { $0.messages.count } }
    }

    var waitingTasks: Int { arrived.withLock { $0.waiting.count } }

    // MARK: The loop's thread

    /// Adds a message. Returns true if receiving should pause.
    func put(_ message: Element) -> Bool { put { $0.messages.append(message) } }

    /// Adds messages.
    /// - Returns: whether receiving should pause.
    @inline(__always)
    func put(_ add: (inout Arrived) -> Void) -> Bool {
        let (isFull, mustWake) = arrived.withLock { arrived -> (Bool, Bool) in
            add(&arrived)
            let isFull = room(&arrived).isNone
            if isFull { self.isFull.store(true, ordering: .releasing) }
            let mustWake = !arrived.waiting.isEmpty && !arrived.willWake
            if mustWake { arrived.willWake = true }
            return (isFull, mustWake)
        }
        if mustWake {
            if let turnEnd { turnEnd.request { [self] in wake() } } else { wake() }
        }
        return isFull
    }

    /// How much fits.
    struct Room {
        var messages: Int
        var bytes: Int
        var isNone: Bool { messages <= 0 || bytes <= 0 }
    }

    @inline(__always)
    func room(_ arrived: inout Arrived, _ wanted: Int = 1) -> Room {
        let room = knownRoom(arrived)
        if room.messages >= wanted, room.bytes > 0 { return room }
        arrived.fetched = (
            fetchedCount.load(ordering: .relaxed), fetchedBytes.load(ordering: .relaxed)
        )
        return knownRoom(arrived)
    }

    @inline(__always)
    private func knownRoom(_ arrived: borrowing Arrived) -> Room {
        Room(
            messages: maxMessages - arrived.messages.count - arrived.fetched.count,
            bytes: maxBytes - arrived.messages.bytes - arrived.fetched.bytes)
    }

    /// Ends the mailbox: no further message comes. Waiting messages can still be taken, unless they
    /// are discarded.
    func finish(_ end: MailboxEnd, discarding: Bool = false) {
        let discarded = discarding ? discard() : nil
        arrived.withLock { if $0.end == nil { $0.end = end } }
        wake()
        // Released outside the locks.
        withExtendedLifetime(discarded) {}
    }

    private func discard() -> (Element.Store, Element.Store) {
        fetched.withLock { fetched in
            arrived.withLock { arrived in
                defer {
                    fetched.messages = Element.Store()
                    arrived.messages = Element.Store()
                    note(fetched)
                }
                return (fetched.messages, arrived.messages)
            }
        }
    }

    /// Wakes as many waiting tasks as there are messages, and all of them at the end.
    private func wake() {
        let woken = arrived.withLock { arrived -> [Waiter] in
            arrived.willWake = false
            let messages = arrived.messages.count + fetchedCount.load(ordering: .acquiring)
            let count = arrived.end != nil ? arrived.waiting.count : messages
            let woken = arrived.waiting.prefix(count).map(\.waiter)
            arrived.waiting.removeFirst(woken.count)
            return woken
        }
        for waiter in woken { waiter.resume() }
    }

    // MARK: Tasks

    /// Takes a message that is there, without `await`.
    /// - Parameter onResume: called when receiving may continue.
    /// - Returns: nil if only `next` can tell what comes.
    @inline(__always)
    func takeNow(onResume: () -> Void) -> Element? {
        if Task.isCancelled { return nil }
        var mayResume = false
        let message = fetched.withLock { fetched -> Element? in
            // Until `next` has left the thread.
            if fetched.isTurnOver { return nil }
            fetched.looks &+= 1
            // The clock is read for every 16th message.
            if fetched.looks & 15 == 0, checkTurn(&fetched) { return nil }
            if fetched.messages.count == 0 { fetch(&fetched) }
            guard let message = fetched.messages.popFirst() else { return nil }
            note(fetched)
            // While many are left, the loop's lock is taken for every 32nd message only.
            let left = fetched.messages.count
            if left < 8 || left & 31 == 0, isFull.load(ordering: .acquiring) {
                mayResume = hasRoomAgain(fetched)
            }
            return message
        }
        if mayResume { onResume() }
        return message
    }

    /// Waits for the next message; nil at a normal end. A message that is there is returned without
    /// leaving the caller's actor, unless that has had no turn for other work for a millisecond.
    /// - Parameters:
    ///   - timeout: how long to wait for a message; nil for no limit.
    ///   - onResume: called when receiving may continue.
    /// - Throws: `CancellationError` if the task is cancelled, also while messages wait: otherwise
    ///   a fast peer could keep a cancelled task busy for ever. They stay for other tasks.
    ///   `RealtimeError(.timeout)`.
    func next(timeout: Duration? = nil, onResume: () -> Void) async throws -> Element? {
        let deadline = timeout.map { Engine.Loop.now() + $0 }
        while true {
            if Task.isCancelled {
                // This task may have been woken for a message that another one must now take.
                wake()
                throw CancellationError()
            }
            if let message = takeNow(onResume: onResume) { return message }
            if takeTurn() {
                await Task.yield()
                continue
            }
            switch endIfEmpty {
            case nil: try await wait(until: deadline)
            case .normal: return nil
            case .failed(let error): throw error
            }
        }
    }

    /// Fetches what has arrived.
    private func fetch(_ fetched: inout Fetched) {
        arrived.withLock { arrived in
            guard arrived.messages.count > 0 else { return }
            swap(&fetched.messages, &arrived.messages)
            fetched.messages.beginTaking()
            note(fetched)
            arrived.fetched = (fetched.messages.count, fetched.messages.bytes)
        }
    }

    @inline(__always)
    private func note(_ fetched: borrowing Fetched) {
        fetchedCount.store(fetched.messages.count, ordering: .releasing)
        fetchedBytes.store(fetched.messages.bytes, ordering: .releasing)
    }

    /// - Returns: whether the actor's other work must have a turn now.
    private func checkTurn(_ fetched: inout Fetched) -> Bool {
        let now = Engine.Loop.now()
        if let began = fetched.turnBegan {
            fetched.isTurnOver = now - began >= turnLength
        } else {
            fetched.turnBegan = now
        }
        return fetched.isTurnOver
    }

    /// Called when no message was taken: the actor's other work has a turn now.
    /// - Returns: whether it must have one before the next message.
    private func takeTurn() -> Bool {
        fetched.withLock { fetched in
            defer { (fetched.turnBegan, fetched.isTurnOver) = (nil, false) }
            return fetched.isTurnOver
        }
    }

    private var endIfEmpty: MailboxEnd? {
        arrived.withLock { $0.messages.count == 0 && fetchedIsEmpty ? $0.end : nil }
    }

    private var fetchedIsEmpty: Bool { fetchedCount.load(ordering: .acquiring) == 0 }

    /// Whether receiving was paused and may continue now.
    private func hasRoomAgain(_ fetched: borrowing Fetched) -> Bool {
        let (count, bytes) = (fetched.messages.count, fetched.messages.bytes)
        guard count <= maxMessages / 2, bytes <= maxBytes / 2 else { return false }
        return arrived.withLock { arrived in
            arrived.fetched = (count, bytes)
            let hasRoom =
                count + arrived.messages.count <= maxMessages / 2
                && bytes + arrived.messages.bytes <= maxBytes / 2
            return hasRoom && isFull.exchange(false, ordering: .acquiringAndReleasing)
        }
    }

    /// Returns when there may be a message, or the end.
    private func wait(until deadline: Instant?) async throws {
        let ticket = arrived.withLock { arrived -> UInt64 in
            arrived.lastTicket += 1
            arrived.starting.updateValue(nil, forKey: arrived.lastTicket)
            return arrived.lastTicket
        }
        let timer = deadline.map { deadline in
            Task.detached { [self] in
                try await Task.sleep(for: max(.zero, deadline - Engine.Loop.now()))
                end(ticket, RealtimeError(.timeout, "no message came in time"))
            }
        }
        defer { timer?.cancel() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { waiter in begin(ticket, waiter) }
        } onCancel: {
            end(ticket, CancellationError())
        }
    }

    private func begin(_ ticket: UInt64, _ waiter: Waiter) {
        let known = arrived.withLock { arrived -> Result<Void, any Error>? in
            let error = arrived.starting.removeValue(forKey: ticket) ?? nil
            guard arrived.messages.count == 0, fetchedIsEmpty, arrived.end == nil else {
                return .success(())
            }
            if let error { return .failure(error) }
            arrived.waiting.append((ticket, waiter))
            return nil
        }
        if let known { waiter.resume(with: known) }
    }

    /// Ends a wait, unless it has ended.
    private func end(_ ticket: UInt64, _ error: any Error) {
        let waiter = arrived.withLock { arrived -> Waiter? in
            if let index = arrived.waiting.firstIndex(where: { $0.ticket == ticket }) {
                return arrived.waiting.remove(at: index).waiter
            }
            if arrived.starting.keys.contains(ticket) { arrived.starting[ticket] = error }
            return nil
        }
        waiter?.resume(throwing: error)
    }

    // MARK: Readers

    /// - Returns: whether no task iterates or waits.
    @discardableResult fileprivate func addReaders(_ change: Int) -> Bool {
        arrived.withLock { arrived in
            arrived.readers += change
            return arrived.readers == 0 && arrived.waiting.isEmpty
        }
    }
}

/// An iterator of a mailbox, with all its copies, until it is released or its task is cancelled.
final class MailboxReader<Element: MailboxElement>: Sendable {
    let mailbox: Mailbox<Element>
    private let hasLeft = Atomic<Bool>(false)

    init(_ mailbox: Mailbox<Element>) {
        self.mailbox = mailbox
        mailbox.addReaders(1)
    }

    deinit { leave() }

    /// - Returns: whether no other task takes messages.
    @discardableResult func leave() -> Bool {
        mailbox.addReaders(hasLeft.exchange(true, ordering: .acquiringAndReleasing) ? 0 : -1)
    }
}
