import Glibc
import Synchronization
import Testing
import Wire

@testable import Engine

struct InboxTests {
    /// A guard against hanging.
    private static let patience = Duration.seconds(30)

    private func put(_ number: Int, into inbox: Inbox, bytes: Int = 1) -> Bool {
        let memory = malloc(MemoryLayout<Int>.size)
        memory?.storeBytes(of: number, as: Int.self)
        return memory.map { inbox.put($0, bytes: bytes) } ?? false
    }

    private func take(from inbox: Inbox, _ timeout: Duration? = patience) throws -> (Int, Bool) {
        let (memory, resumes) = try inbox.take(timeout)
        defer { free(memory) }
        return (memory.load(as: Int.self), resumes)
    }

    private func code(_ body: () throws -> Void) -> RealtimeError.Code? {
        do {
            try body()
            return nil
        } catch {
            return (error as? RealtimeError)?.code
        }
    }

    @Test func itemsKeepTheirOrder() throws {
        let inbox = Inbox(maxItems: 1000)
        var next = 0
        for number in 0..<500 {
            #expect(!put(number, into: inbox))
            // Take them more slowly than they come, so that the storage of taken items is reused.
            if number % 3 == 0 {
                #expect(try take(from: inbox).0 == next)
                next += 1
            }
        }
        while next < 500 {
            #expect(try take(from: inbox).0 == next)
            next += 1
        }
        #expect(code { _ = try take(from: inbox, .zero) } == .timeout)
    }

    /// Takes a batch and frees it.
    private func takeBatch(
        from inbox: Inbox, atMost most: Int
    ) throws -> (numbers: [Int], resumes: Bool) {
        let (memory, resumes) = try inbox.takeBatch(
            .zero, atMost: most, structBytes: MemoryLayout<Int>.size)
        defer { Inbox.free(batch: memory) }
        // As in C: the header's size, the structs, and how many they are.
        let structs = memory.load(fromByteOffset: 8, as: UnsafePointer<Int>.self)
        let count = memory.load(fromByteOffset: 16, as: Int.self)
        #expect(memory.load(as: Int.self) == 24)
        return (Array(UnsafeBufferPointer(start: structs, count: count)), resumes)
    }

    @Test func aBatchTakesWhatIsThere() throws {
        let inbox = Inbox(maxItems: 4)
        #expect((0..<5).map { put($0, into: inbox) } == [false, false, false, true, true])
        #expect(try takeBatch(from: inbox, atMost: 2) == ([0, 1], false))
        #expect(try takeBatch(from: inbox, atMost: 100) == ([2, 3, 4], true))
        #expect(code { _ = try takeBatch(from: inbox, atMost: 1) } == .timeout)
    }

    @Test func anInterruptionEndsOneWait() throws {
        let inbox = Inbox()
        inbox.interrupt()
        // What is there can be taken, and a call that does not wait is not interrupted.
        #expect(!put(1, into: inbox))
        #expect(try take(from: inbox).0 == 1)
        #expect(code { _ = try take(from: inbox, .zero) } == .timeout)
        #expect(code { _ = try take(from: inbox, nil) } == .cancelled)
        #expect(code { _ = try take(from: inbox, .milliseconds(1)) } == .timeout)
    }

    @Test func anInterruptionEndsAllPresentWaits() throws {
        let inbox = Inbox()
        let ended = Atomic<Int>(0)
        let threads = (0..<3).map { _ in
            Thread {
                if code({ _ = try take(from: inbox) }) == .cancelled {
                    ended.add(1, ordering: .relaxed)
                }
            }
        }
        while inbox.waitingThreads < 3 { sched_yield() }
        inbox.interrupt()
        for thread in threads { thread.join() }
        #expect(ended.load(ordering: .relaxed) == 3)
        #expect(code { _ = try take(from: inbox, .milliseconds(1)) } == .timeout)
    }

    @Test(arguments: [(4, 100), (100, 4)])
    func aFullOnePausesUntilHalfIsTaken(_ maxItems: Int, _ maxBytes: Int) throws {
        let inbox = Inbox(maxItems: maxItems, maxBytes: maxBytes)
        #expect((0..<5).map { put($0, into: inbox) } == [false, false, false, true, true])
        #expect(inbox.shouldPause)
        let resumes = try (0..<5).map { _ in try take(from: inbox).1 }
        #expect(resumes == [false, false, true, false, false])
        #expect(!inbox.shouldPause && !put(5, into: inbox))
    }

    @Test func itemsCanBeTakenAfterTheEnd() throws {
        let inbox = Inbox()
        _ = put(1, into: inbox)
        inbox.finish(RealtimeError(.closed, "in order"))
        inbox.finish(RealtimeError(.protocolViolation, "too late"))
        #expect(!put(2, into: inbox))
        #expect(try take(from: inbox).0 == 1)
        #expect(code { _ = try take(from: inbox) } == .closed)
    }

    @Test func aTimeoutAppliesToItsCall() {
        let inbox = Inbox()
        inbox.opened()
        inbox.finish(RealtimeError(.timeout, "no pong"))
        #expect(code { _ = try take(from: inbox) } == .connectionLost)
        // The connection was there, and a call may wake up late.
        #expect(code { try inbox.waitUntilOpen(.zero) } == nil)
    }

    @Test func waitingForAConnectionThrowsItsError() {
        let inbox = Inbox()
        #expect(code { try inbox.waitUntilOpen(.milliseconds(1)) } == .timeout)
        inbox.finish(RealtimeError(.connect, "refused"))
        #expect(code { try inbox.waitUntilOpen(InboxTests.patience) } == .connect)
    }

    @Test func severalThreadsTakeEachItemOnce() async throws {
        let inbox = Inbox(maxItems: 8)
        let count = 2000
        let seen = Mutex<[Int]>([])
        let threads = (0..<3).map { _ in
            Thread {
                while let (memory, _) = try? inbox.take(InboxTests.patience) {
                    seen.withLock { $0.append(memory.load(as: Int.self)) }
                    free(memory)
                }
            }
        }
        for number in 0..<count { _ = put(number, into: inbox) }
        inbox.finish(RealtimeError(.closed, "in order"))
        for thread in threads { thread.join() }
        #expect(seen.withLock { $0.sorted() } == Array(0..<count))
    }

    /// A thread that waits for a connection does not keep an item from one that waits for it.
    @Test func anItemWakesTheThreadThatTakesIt() {
        let inbox = Inbox()
        let connecting = (0..<4).map { _ in
            Thread { try? inbox.waitUntilOpen(InboxTests.patience) }
        }
        while inbox.waitingThreads < 4 { sched_yield() }
        let taken = Mutex<Int?>(nil)
        let taking = Thread {
            guard let (memory, _) = try? inbox.take(InboxTests.patience) else { return }
            taken.withLock { $0 = memory.load(as: Int.self) }
            free(memory)
        }
        while inbox.waitingThreads < 5 { sched_yield() }
        _ = put(7, into: inbox)
        taking.join()
        #expect(taken.withLock { $0 } == 7)
        // It did not find the item at the end of its patience, which is also theirs.
        #expect(inbox.waitingThreads == 4)
        inbox.opened()
        for thread in connecting { thread.join() }
    }

    @Test func waitingItemsDoNotDelayOtherHandlers() throws {
        let inbox = Inbox(maxItems: 2)
        #expect(!inbox.release())
        _ = put(1, into: inbox)
        #expect(put(2, into: inbox))
        #expect(inbox.release())
        #expect(!inbox.shouldPause && !inbox.release())
        #expect(try take(from: inbox).0 == 1)
    }

    @Test func aNewStartForgetsTheEnd() throws {
        let inbox = Inbox()
        inbox.begin(epoch: 1)
        inbox.opened(epoch: 1)
        _ = put(1, into: inbox)
        inbox.begin(epoch: 2)
        // This event of the earlier connection comes too late.
        inbox.opened(epoch: 1)
        inbox.finish(RealtimeError(.connect, "refused"), epoch: 1)
        #expect(code { try inbox.waitUntilOpen(.zero) } == .timeout)
        inbox.finish(RealtimeError(.closed, "in order"), epoch: 2)
        #expect(code { try inbox.waitUntilOpen(.zero) } == .closed)
        inbox.begin(epoch: 3)
        inbox.opened(epoch: 3)
        #expect(code { try inbox.waitUntilOpen(.zero) } == nil)
        #expect(try take(from: inbox).0 == 1)
        inbox.finish(RealtimeError(.closed, "for all"))
        #expect(code { _ = try take(from: inbox) } == .closed)
    }

    @Test func theLoopsEndEndsTheInbox() throws {
        let loop = try Loop()
        let (early, gone) = (Inbox(on: loop), Inbox(on: loop))
        _ = put(1, into: early)
        _ = consume gone
        loop.close()
        #expect(try take(from: early).0 == 1)
        #expect(code { _ = try take(from: early) } == .closed)
        #expect(code { _ = try take(from: Inbox(on: loop)) } == .closed)
    }
}

/// A thread that may block, unlike those of the cooperative pool.
private final class Thread: Sendable {
    private let number: UInt

    init(_ body: @escaping @Sendable () -> Void) {
        var number: UInt = 0
        let start = Unmanaged.passRetained(Body(body))
        pthread_create(&number, nil, { Thread.run($0) }, start.toOpaque())
        self.number = number
    }

    func join() { pthread_join(number, nil) }

    private static func run(_ body: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        if let body { Unmanaged<Body>.fromOpaque(body).takeRetainedValue().run() }
        return nil
    }

    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }
}
