import Glibc
import Session
import Synchronization
package import Wire

/// A bounded first-in, first-out queue of received messages, for threads that block until one
/// arrives. The loop's thread fills it; any thread takes messages.
///
/// Unchecked because only the holder of `lock` touches the fields below it.
package final class Inbox: @unchecked Sendable {
    /// Memory from `malloc`; `take` passes its ownership to the caller.
    private struct Item {
        var memory: UnsafeMutableRawPointer
        var bytes: Int
    }

    private let lock = Monitor()
    private let maxItems: Int
    private let maxBytes: Int

    private var items: [Item] = []
    /// Items before this index were taken.
    private var head = 0
    private var bytes = 0
    /// True once it filled up, until half of it was taken.
    private var isFull = false
    private var hasOpened = false
    /// The argument of the last `begin`; 0 for objects that begin once.
    private var epoch: UInt64 = 0
    private var end: RealtimeError?
    private var waiting = 0
    /// How many times waiting threads were interrupted.
    private var interruptions: UInt64 = 0
    /// The next wait is interrupted, because no thread waited when it was requested.
    private var isInterrupted = false
    private let loopInboxes: LoopInboxes?

    /// - Parameter loop: when it ends, the inbox ends.
    package init(on loop: Loop? = nil, maxItems: Int = 1024, maxBytes: Int = 8 << 20) {
        (self.maxItems, self.maxBytes) = (maxItems, maxBytes)
        loopInboxes = loop.map { $0.local(LoopInboxes.self) { LoopInboxes() } }
        loopInboxes?.add(self)
        if loop?.isClosed.load(ordering: .acquiring) == true { finish(LoopInboxes.freed) }
    }

    deinit {
        loopInboxes?.remove(self)
        for item in items[head...] { Inbox.free(item.memory) }
    }

    // MARK: The loop's thread

    /// - Returns: whether receiving should pause until `take` returns `resumes`.
    package func put(_ memory: UnsafeMutableRawPointer, bytes count: Int) -> Bool {
        lock.locked {
            if end != nil {
                Inbox.free(memory)
                return false
            }
            items.append(Item(memory: memory, bytes: count))
            bytes += count
            isFull = isFull || items.count - head >= maxItems || bytes >= maxBytes
            // All of them: one that waits for a connection would swallow a single signal.
            if waiting > 0 { lock.wakeAll() }
            return isFull
        }
    }

    /// Like `put`, for several items at once.
    func put(_ messages: [ReceivedMemory]) -> Bool {
        lock.locked {
            if end != nil {
                for message in messages { Inbox.free(message.start) }
                return false
            }
            for message in messages {
                items.append(Item(memory: message.start, bytes: message.textBytes))
                bytes += message.textBytes
            }
            isFull = isFull || items.count - head >= maxItems || bytes >= maxBytes
            if waiting > 0 { lock.wakeAll() }
            return isFull
        }
    }

    /// How many items it takes until it is full.
    var room: Int { lock.locked { maxItems - (items.count - head) } }

    /// Whether receiving should pause. Check again after pausing, because `take` may have made room
    /// before.
    package var shouldPause: Bool { lock.locked { isFull } }

    /// A handler takes the messages from now on, so a full inbox no longer delays the connection.
    /// - Returns: whether receiving was paused, and should resume.
    package func release() -> Bool {
        lock.locked {
            defer { isFull = false }
            return isFull
        }
    }

    /// The connection is open.
    /// - Parameter epoch: the `begin` that it belongs to; after a newer one the call does nothing.
    package func opened(epoch: UInt64 = 0) {
        lock.locked {
            guard epoch == self.epoch else { return }
            hasOpened = true
            lock.wakeAll()
        }
    }

    /// No more messages will come, for this reason. Messages received before can still be taken.
    /// - Parameter epoch: the `begin` that has ended, nil for all; after a newer one the call does
    ///   nothing.
    package func finish(_ error: RealtimeError, epoch: UInt64? = nil) {
        lock.locked {
            guard epoch ?? self.epoch == self.epoch else { return }
            if end == nil { end = error }
            lock.wakeAll()
        }
    }

    // MARK: Any thread

    /// The object starts again, possibly after an end.
    package func begin(epoch: UInt64) {
        lock.locked {
            guard epoch > self.epoch else { return }
            self.epoch = epoch
            (hasOpened, end) = (false, nil)
        }
    }

    /// Why no more messages come; nil while they may.
    package var ending: RealtimeError? { lock.locked { end } }

    /// Waits until there was a connection since `begin`. If it was lost again before this thread
    /// woke up, it still counts, because its messages can be taken.
    /// - Parameter timeout: nil for no limit.
    package func waitUntilOpen(_ timeout: Duration?) throws(RealtimeError) {
        let error: RealtimeError? = lock.locked {
            let failure = wait(timeout, "there is no connection yet") {
                hasOpened || end != nil
            }
            return hasOpened ? nil : failure ?? end
        }
        if let error { throw error }
    }

    /// Takes the next item, and blocks until there is one. If `resumes` is true, receiving was
    /// paused and should resume.
    /// - Parameter timeout: nil for no limit.
    package func take(
        _ timeout: Duration?
    ) throws(RealtimeError) -> (memory: UnsafeMutableRawPointer, resumes: Bool) {
        let outcome: Result<(UnsafeMutableRawPointer, Bool), RealtimeError> = lock.locked {
            if let failure = awaitItem(timeout) { return .failure(failure) }
            let memory = items[head].memory
            return .success((memory, remove(1)))
        }
        return try outcome.get()
    }

    /// Like `take`, for all items that are there, up to `most`: takes them as one batch.
    /// - Parameter structBytes: the size of the struct with which each item begins.
    package func takeBatch(
        _ timeout: Duration?, atMost most: Int, structBytes: Int
    ) throws(RealtimeError) -> (memory: UnsafeMutableRawPointer, resumes: Bool) {
        let outcome: Result<(UnsafeMutableRawPointer, Bool), RealtimeError> = lock.locked {
            if let failure = awaitItem(timeout) { return .failure(failure) }
            let count = min(most, items.count - head)
            let batch = InboxBatch(count, structBytes: structBytes)
            for index in 0..<count { batch.set(items[head + index].memory, at: index) }
            return .success((batch.memory, remove(count)))
        }
        return try outcome.get()
    }

    /// Waits until there is an item.
    private func awaitItem(_ timeout: Duration?) -> RealtimeError? {
        let failure = wait(timeout, "no message came in time") {
            head < items.count || end != nil
        }
        if failure != nil || head < items.count { return failure }
        let reason = end ?? RealtimeError(.closed, "no more messages come")
        // `.timeout` would mean that the call's own time is up.
        let code = reason.code == .timeout ? .connectionLost : reason.code
        return RealtimeError(code, reason.message)
    }

    /// Frees memory that `take` returned.
    package static func free(_ memory: UnsafeMutableRawPointer?) { Glibc.free(memory) }

    /// Removes the first items, whose memory was taken.
    /// - Returns: whether receiving was paused, and should resume.
    private func remove(_ count: Int) -> Bool {
        for item in items[head..<head + count] { bytes -= item.bytes }
        head += count
        if head == items.count {
            items.removeAll(keepingCapacity: true)
            head = 0
        } else if head >= 64, head * 2 >= items.count {
            items.removeFirst(head)
            head = 0
        }
        let resumes = isFull && items.count - head <= maxItems / 2 && bytes <= maxBytes / 2
        if resumes { isFull = false }
        return resumes
    }

    /// How many threads wait. For tests.
    var waitingThreads: Int { lock.locked { waiting } }

    /// Ends the waits of all threads with `.cancelled`. If none waits, the next one that would wait
    /// ends at once.
    package func interrupt() {
        lock.locked { isInterrupted = !endWaits() }
    }

    /// - Returns: false if no thread waits; then the call has no effect.
    func interruptWaiting() -> Bool { lock.locked { endWaits() } }

    private func endWaits() -> Bool {
        guard waiting > 0 else { return false }
        interruptions += 1
        lock.wakeAll()
        return true
    }

    /// Takes over the interruption of the next wait.
    func takeInterruption() -> Bool {
        lock.locked {
            defer { isInterrupted = false }
            return isInterrupted
        }
    }

    /// The object starts again after an end.
    func reopen() { lock.locked { end = nil } }

    /// Waits, without the lock meanwhile.
    /// - Parameter late: the message if the time is up.
    private func wait(
        _ timeout: Duration?, _ late: String, until isReady: () -> Bool
    ) -> RealtimeError? {
        if isReady() { return nil }
        if timeout == .zero { return RealtimeError(.timeout, late) }
        if isInterrupted {
            isInterrupted = false
            return Inbox.interrupted
        }
        let deadline = timeout.map { Loop.now() + $0 }
        waiting += 1
        defer { waiting -= 1 }
        let before = interruptions
        while !isReady() {
            if interruptions != before { return Inbox.interrupted }
            guard let deadline else {
                lock.wait()
                continue
            }
            if !lock.wait(until: deadline), !isReady() { return RealtimeError(.timeout, late) }
        }
        return nil
    }

    static var interrupted: RealtimeError {
        RealtimeError(.cancelled, "the wait was interrupted")
    }
}

/// The inboxes of a loop's objects. When the loop ends, it ends them all.
private final class LoopInboxes: LoopLocal {
    /// Unchecked because it is only used under the lock, and an inbox that is released waits for
    /// the lock to remove itself.
    private struct Entry: @unchecked Sendable { let inbox: Unmanaged<Inbox> }

    static let freed = RealtimeError(.closed, "the loop was freed")

    private let entries = Mutex<[ObjectIdentifier: Entry]>([:])
    /// The thread that ends all inboxes, and holds the lock; 0 for none.
    private let closer = Atomic<UInt>(0)

    func add(_ inbox: Inbox) {
        let entry = Entry(inbox: .passUnretained(inbox))
        entries.withLock { $0[ObjectIdentifier(inbox)] = entry }
    }

    func remove(_ inbox: Inbox) {
        // An inbox that its owner released while `loopClosed` uses it ends there.
        guard closer.load(ordering: .relaxed) != UInt(pthread_self()) else { return }
        _ = entries.withLock { $0.removeValue(forKey: ObjectIdentifier(inbox)) }
    }

    func loopClosed() {
        entries.withLock { entries in
            closer.store(UInt(pthread_self()), ordering: .relaxed)
            for entry in entries.values {
                entry.inbox._withUnsafeGuaranteedRef { $0.finish(LoopInboxes.freed) }
            }
            entries = [:]
            closer.store(0, ordering: .relaxed)
        }
    }
}
