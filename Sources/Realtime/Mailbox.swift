import Synchronization

/// How a mailbox ends for the tasks that wait for messages.
enum MailboxEnd: Sendable {
    /// In order: the iteration ends.
    case normal
    case failed(any Error)
}

/// An element of a mailbox.
protocol MailboxElement: Sendable {
    /// Its size in bytes.
    var count: Int { get }
    /// Replaces an element that was taken.
    static var taken: Self { get }
}

/// A bounded queue of messages, or pieces of them, from the loop's thread to waiting tasks.
final class Mailbox<Element: MailboxElement>: Sendable {
    typealias Continuation = CheckedContinuation<Element?, any Error>

    private struct Contents: ~Copyable {
        var messages: [Element] = []
        /// Messages before this index were taken.
        var head = 0
        var bytes = 0
        var end: MailboxEnd?
        var isPaused = false
        var waiting: [(ticket: UInt64, continuation: Continuation)] = []
        /// Tickets of waits that were cancelled before they began.
        var cancelled: Set<UInt64> = []
        var lastTicket: UInt64 = 0
        /// How many messages were taken without waiting.
        var taken: UInt64 = 0

        var count: Int { messages.count - head }
    }

    private struct Taken {
        let message: Element
        /// Whether receiving may continue.
        let mayResume: Bool
        /// Whether other tasks on the caller's actor should run first.
        let yields: Bool
    }

    /// The result of looking into the box.
    private enum Look {
        case message(Taken)
        case end(MailboxEnd)
        case nothing
    }

    private let contents = Mutex(Contents())
    private let maxMessages: Int
    private let maxBytes: Int

    init(_ maxMessages: Int, _ maxBytes: Int) {
        self.maxMessages = maxMessages
        self.maxBytes = maxBytes
    }

    /// Whether it filled up and has not been emptied enough since.
    var isPaused: Bool { contents.withLock { $0.isPaused } }

    /// The number of waiting messages.
    var count: Int { contents.withLock { $0.count } }

    /// Adds a message. Returns true if receiving should pause.
    func put(_ message: Element) -> Bool {
        let (waiter, isFull) = contents.withLock { contents -> (Continuation?, Bool) in
            if !contents.waiting.isEmpty {
                return (contents.waiting.removeFirst().continuation, false)
            }
            contents.messages.append(message)
            contents.bytes += message.count
            let isFull = contents.count >= maxMessages || contents.bytes >= maxBytes
            if isFull { contents.isPaused = true }
            return (nil, isFull)
        }
        waiter?.resume(returning: message)
        return isFull
    }

    /// Ends the mailbox: no further message comes. Waiting messages can still be taken, unless they
    /// are discarded.
    func finish(_ end: MailboxEnd, discarding: Bool = false) {
        let waiting = contents.withLock { contents -> [Continuation] in
            if contents.end == nil { contents.end = end }
            if discarding {
                contents.messages = []
                contents.head = 0
                contents.bytes = 0
            }
            defer { contents.waiting = [] }
            return contents.waiting.map(\.continuation)
        }
        for continuation in waiting { Mailbox.resume(continuation, end) }
    }

    /// Waits for the next message; nil at a normal end. A message that is there is returned without
    /// leaving the caller's actor, except after every 64th, so that the actor's other work runs.
    /// - Parameter onResume: called when receiving may continue.
    /// - Throws: `CancellationError` if the task is cancelled, also while messages wait: otherwise
    ///   a fast peer could keep a cancelled task busy for ever. They stay for other tasks.
    func next(
        isolation actor: isolated (any Actor)? = #isolation, onResume: () -> Void
    ) async throws -> Element? {
        try Task.checkCancellation()
        if let taken = contents.withLock({ take(&$0) }) {
            if taken.mayResume { onResume() }
            if taken.yields { await Task.yield() }
            return taken.message
        }
        let ticket = contents.withLock { contents -> UInt64 in
            contents.lastTicket += 1
            return contents.lastTicket
        }
        defer { contents.withLock { _ = $0.cancelled.remove(ticket) } }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                switch look(orWait: continuation, ticket) {
                case .nothing: break
                case .message(let taken):
                    if taken.mayResume { onResume() }
                    continuation.resume(returning: taken.message)
                case .end(let end): Mailbox.resume(continuation, end)
                }
            }
        } onCancel: {
            cancel(ticket)
        }
    }

    private func look(orWait continuation: Continuation, _ ticket: UInt64) -> Look {
        contents.withLock { contents in
            if contents.cancelled.contains(ticket) { return .end(.failed(CancellationError())) }
            if let taken = take(&contents) { return .message(taken) }
            if let end = contents.end { return .end(end) }
            contents.waiting.append((ticket, continuation))
            return .nothing
        }
    }

    private func take(_ contents: inout Contents) -> Taken? {
        guard contents.count > 0 else { return nil }
        // Moved out of its slot; the slots are freed in bulk.
        var message = Element.taken
        swap(&message, &contents.messages[contents.head])
        contents.head += 1
        contents.bytes -= message.count
        contents.taken += 1
        Mailbox.compact(&contents)
        let mayResume =
            contents.isPaused && contents.count <= maxMessages / 2
            && contents.bytes <= maxBytes / 2
        if mayResume { contents.isPaused = false }
        return Taken(
            message: message, mayResume: mayResume, yields: contents.taken.isMultiple(of: 64))
    }

    /// Frees the slots of taken messages, at a constant cost per message.
    private static func compact(_ contents: inout Contents) {
        if contents.head == contents.messages.count {
            contents.messages.removeAll(keepingCapacity: true)
            contents.head = 0
        } else if contents.head >= 64, contents.head * 2 >= contents.messages.count {
            contents.messages.removeFirst(contents.head)
            contents.head = 0
        }
    }

    private func cancel(_ ticket: UInt64) {
        let waiter = contents.withLock { contents -> Continuation? in
            guard let index = contents.waiting.firstIndex(where: { $0.ticket == ticket }) else {
                contents.cancelled.insert(ticket)
                return nil
            }
            return contents.waiting.remove(at: index).continuation
        }
        waiter?.resume(throwing: CancellationError())
    }

    private static func resume(_ continuation: Continuation, _ end: MailboxEnd) {
        switch end {
        case .normal: continuation.resume(returning: nil)
        case .failed(let error): continuation.resume(throwing: error)
        }
    }
}
