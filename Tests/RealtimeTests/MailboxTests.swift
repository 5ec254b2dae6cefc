import Synchronization
import Testing
import Wire

@testable import Realtime

private struct Broken: Error, Equatable {}

/// What a task that waited for the next message received.
private enum Got: Equatable {
    case message(WebSocket.Message?)
    case broken, cancelled
}

private func take(_ box: Mailbox<WebSocket.Message>, onResume: () -> Void = {}) async -> Got {
    do {
        return .message(try await box.next(onResume: onResume))
    } catch is CancellationError {
        return .cancelled
    } catch {
        return .broken
    }
}

@Suite(.timeLimit(.minutes(5))) struct MailboxTests {
    @Test func messagesComeOutInOrder() async {
        let box = Mailbox<WebSocket.Message>(1000, 1000)
        // More than the mailbox compacts at once, with takes in between.
        for number in 0..<200 {
            _ = box.put(.text(String(number)))
            if number >= 100 {
                #expect(await take(box) == .message(.text(String(number - 100))))
            }
        }
        for number in 100..<200 {
            #expect(await take(box) == .message(.text(String(number))))
        }
    }

    @Test func itIsFullAtTheMessageLimit() {
        let box = Mailbox<WebSocket.Message>(2, 1000)
        #expect(!box.put(.text("")))
        #expect(!box.isPaused)
        #expect(box.put(.text("")))
        #expect(box.isPaused)
    }

    @Test func itIsFullAtTheByteLimit() {
        let box = Mailbox<WebSocket.Message>(1000, 10)
        #expect(!box.put(.binary([1, 2, 3])))
        #expect(box.put(.text("1234567")))
    }

    /// The loop pauses a mailbox at the same moment as its task takes the last message and waits.
    @Test(arguments: 1...4) func aPauseAlwaysEnds(limit: Int) async {
        let box = Mailbox<WebSocket.Message>(limit, .max)
        let count = 100_000
        let producer = Task.detached {
            for number in 0..<count where box.put(.binary([UInt8(truncatingIfNeeded: number)])) {
                while box.isPaused { await Task.yield() }
            }
        }
        var wrong = 0
        for number in 0..<count {
            let expected = WebSocket.Message.binary([UInt8(truncatingIfNeeded: number)])
            if await take(box) != .message(expected) { wrong += 1 }
        }
        await producer.value
        #expect(wrong == 0)
    }

    @Test func receivingResumesOnceWhenItIsHalfEmpty() async {
        let box = Mailbox<WebSocket.Message>(4, 1000)
        for _ in 0..<4 { _ = box.put(.text("x")) }
        let resumed = Mutex<[Int]>([])
        for taken in 1...4 {
            _ = await take(box) { resumed.withLock { $0.append(taken) } }
        }
        #expect(resumed.withLock { $0 } == [2])
        #expect(!box.isPaused)
    }

    @Test func messagesCanBeTakenAfterTheEnd() async {
        let box = Mailbox<WebSocket.Message>(4, 1000)
        _ = box.put(.text("last"))
        box.finish(.normal)
        #expect(await take(box) == .message(.text("last")))
        #expect(await take(box) == .message(nil))
        #expect(await take(box) == .message(nil))
    }

    @Test func theFirstEndCounts() async {
        let box = Mailbox<WebSocket.Message>(4, 1000)
        box.finish(.failed(Broken()))
        box.finish(.normal)
        #expect(await take(box) == .broken)
    }

    @Test func everyWaitingTaskGetsTheEnd() async {
        let box = Mailbox<WebSocket.Message>(4, 1000)
        async let first = take(box)
        async let second = take(box)
        box.finish(.failed(Broken()))
        #expect(await [first, second] == [.broken, .broken])
    }

    @Test func aCancelledTaskLosesNoMessage() async {
        let box = Mailbox<WebSocket.Message>(4, 1000)
        let waiting = Task { await take(box) }
        waiting.cancel()
        #expect(await waiting.value == .cancelled)
        _ = box.put(.text("for another"))
        #expect(await take(box) == .message(.text("for another")))
    }

    @Test func aCancelledTaskLeavesWaitingMessages() async {
        let box = Mailbox<WebSocket.Message>(4, 1000)
        _ = box.put(.text("for another"))
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return await take(box)
        }
        task.cancel()
        #expect(await task.value == .cancelled)
        #expect(await take(box) == .message(.text("for another")))
    }

    /// Otherwise each message would cost two changes of the thread.
    @Test @MainActor func messagesAreTakenWithoutLeavingTheActor() async {
        let box = Mailbox<WebSocket.Message>(10_000, 1 << 20, turn: .seconds(1000))
        for number in 0..<5000 { _ = box.put(.text(String(number))) }
        let hasLeft = Atomic<Bool>(false)
        let other = Task { @MainActor in hasLeft.store(true, ordering: .relaxed) }
        for number in 0..<5000 {
            let message = try? await box.next {}
            let left = hasLeft.load(ordering: .relaxed)
            #expect(message == .text(String(number)) && !left)
        }
        await other.value
    }

    /// The actor's other work has turns, however many messages there are.
    @Test @MainActor func aFullMailboxLeavesTurnsToOthers() async {
        let box = Mailbox<WebSocket.Message>(.max, .max)
        let isDone = Atomic<Bool>(false)
        _ = box.put(.text(""))
        let other = Task { @MainActor in isDone.store(true, ordering: .relaxed) }
        while !isDone.load(ordering: .relaxed) {
            _ = try? await box.next {}
            _ = box.put(.text(""))
        }
        await other.value
    }

    /// The clock is read for every 16th message: the first time begins a turn, the second ends it.
    @Test @MainActor func aTurnEndsAfterItsLength() async {
        let box = Mailbox<WebSocket.Message>(1000, 1000, turn: .zero)
        for _ in 0..<64 { _ = box.put(.text("")) }
        let hasLeft = Atomic<Bool>(false)
        let other = Task { @MainActor in hasLeft.store(true, ordering: .relaxed) }
        for _ in 0..<64 { _ = try? await box.next {} }
        let left = hasLeft.load(ordering: .relaxed)
        #expect(left)
        await other.value
    }

    /// It is not continued by what `takeNow` did not return: a thread that is never left would be
    /// lost for all other tasks, too, and there may be no second one.
    @Test @MainActor func aTurnEndsIfMessagesAreTakenWithoutAwait() async {
        let box = Mailbox<WebSocket.Message>(1000, 1000, turn: .zero)
        for _ in 0..<64 { _ = box.put(.text("")) }
        let hasLeft = Atomic<Bool>(false)
        let other = Task { @MainActor in hasLeft.store(true, ordering: .relaxed) }
        for _ in 0..<64 where box.takeNow(onResume: {}) == nil { _ = try? await box.next {} }
        let left = hasLeft.load(ordering: .relaxed)
        #expect(left)
        await other.value
    }

    @Test func aWaitEndsAfterItsTimeout() async throws {
        let box = Mailbox<WebSocket.Message>(1000, 1000)
        let error = await #expect(throws: RealtimeError.self) {
            try await box.next(timeout: .milliseconds(1)) {}
        }
        #expect(error?.code == .timeout)
        _ = box.put(.text("later"))
        #expect(try await box.next(timeout: .zero) {} == .text("later"))
    }

    /// A task that is woken for a message, and cancelled before it takes it, wakes the next one.
    @Test func aCancelledTaskLeavesItsMessageToTheNext() async {
        for _ in 0..<300 {
            let box = Mailbox<WebSocket.Message>(4, 1000)
            let tasks = (0..<2).map { _ in Task { await take(box) } }
            while box.waitingTasks < 2 { await Task.yield() }
            _ = box.put(.text("once"))
            tasks[0].cancel()
            let first = await tasks[0].value
            if first == .cancelled {
                #expect(await tasks[1].value == .message(.text("once")))
            } else {
                #expect(first == .message(.text("once")))
                box.finish(.normal)
                #expect(await tasks[1].value == .message(nil))
            }
        }
    }

    @Test func discardedMessagesAreGone() async {
        let box = Mailbox<WebSocket.Message>(4, 1000)
        for _ in 0..<3 { _ = box.put(.text("x")) }
        #expect(await take(box) == .message(.text("x")))
        box.finish(.normal, discarding: true)
        #expect(await take(box) == .message(nil))
        #expect(box.count == 0)
    }

    @Test @MainActor func anActorReceivesEveryMessageInOrder() async {
        let box = Mailbox<WebSocket.Message>(.max, .max)
        let sending = Task.detached {
            for number in 0..<20_000 { _ = box.put(.text(String(number))) }
            box.finish(.normal)
        }
        var expected = 0
        while let message = try? await box.next(onResume: {}) {
            guard message == .text(String(expected)) else { break }
            expected += 1
        }
        #expect(expected == 20_000)
        await sending.value
    }

    @Test func eachMessageGoesToOneOfManyTasks() async {
        let box = Mailbox<WebSocket.Message>(10_000, 1 << 20)
        let seen = await withTaskGroup(of: [String].self) { group in
            for _ in 0..<8 {
                group.addTask {
                    var mine: [String] = []
                    while case .message(.text(let text)) = await take(box) { mine.append(text) }
                    return mine
                }
            }
            for number in 0..<2000 { _ = box.put(.text(String(number))) }
            box.finish(.normal)
            return await group.reduce(into: []) { $0 += $1 }
        }
        #expect(seen.compactMap { Int($0) }.sorted() == Array(0..<2000))
    }
}
