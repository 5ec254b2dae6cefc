import Dispatch
import Realtime
import Synchronization
import Testing

private let server = EchoServer.shared

/// Runs each job inside the call that makes it ready, for example on the loop's thread.
private final class Inline: TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) {
        UnownedJob(job).runSynchronously(on: asUnownedTaskExecutor())
    }
}

/// Blocks the calling thread until another one has done this.
private func blocking<Value: Sendable>(
    _ body: @escaping @Sendable () async throws -> Value
) -> Result<Value, any Error> {
    let result = Mutex<Result<Value, any Error>?>(nil)
    let done = DispatchSemaphore(value: 0)
    Task.detached {
        let new: Result<Value, any Error>
        do { new = .success(try await body()) } catch { new = .failure(error) }
        result.withLock { $0 = new }
        done.signal()
    }
    done.wait()
    return result.withLock { $0 } ?? .failure(CancellationError())
}

/// How tasks receive messages: several at a time, with a time limit, on an actor.
@Suite(.timeLimit(.minutes(5))) struct WebSocketReceivingTests {
    @Test func cancellingOneOfSeveralTasksLeavesTheOthersTheConnection() async throws {
        let socket = try await WebSocket.connect(server.url("echo"))
        let (seen, continuation) = AsyncStream.makeStream(of: String.self)
        let tasks = (0..<2).map { number in
            Task {
                var iterator = socket.messages.makeAsyncIterator()
                continuation.yield("begins")
                while let message = try await iterator.next() {
                    if case .text(let text) = message { continuation.yield(text) }
                }
                continuation.yield("\(number) ends")
            }
        }
        var events = seen.makeAsyncIterator()
        for _ in tasks { #expect(await events.next() == "begins") }
        tasks[0].cancel()
        await #expect(throws: CancellationError.self) { try await tasks[0].value }
        try await socket.send("still open")
        #expect(await events.next() == "still open")
        try await socket.close()
        try await tasks[1].value
        #expect(await events.next() == "1 ends")
    }

    /// The last one that is cancelled closes the connection.
    @Test func cancellingAllTasksClosesTheConnection() async throws {
        let socket = try await WebSocket.connect(server.url("echo"))
        let tasks = (0..<8).map { _ in
            Task { for try await _ in socket.messages {} }
        }
        for task in tasks { task.cancel() }
        for task in tasks { _ = await task.result }
        #expect(try await socket.waitUntilClosed().code == .goingAway)
    }

    /// The other task works on a message meanwhile, so that no task waits.
    @Test(arguments: [true, false]) func cancellingLeavesTheConnectionToTasksThatReceive(
        iterates: Bool
    ) async throws {
        let socket = try await WebSocket.connect(server.url("echo"))
        try await socket.send("first")
        #expect(try await socket.receive() == .text("first"))
        let (begun, continuation) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            var iterator = socket.messages.makeAsyncIterator()
            continuation.yield()
            _ = try await iterates ? iterator.next() : socket.receive()
        }
        for await _ in begun { break }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(socket.state == .open)
        try await socket.send("second")
        #expect(try await socket.receive() == .text("second"))
        try await socket.close()
        #expect(try await socket.receive() == nil)
    }

    /// Without any other task.
    @Test(arguments: [true, false]) func cancellingAReceiveLosesNothing(
        inPieces: Bool
    ) async throws {
        var options = WebSocket.Options()
        options.deliversPieces = inPieces
        let socket = try await WebSocket.connect(server.url("echo"), options: options)
        let receive: @Sendable () async throws -> Int? = {
            try await inPieces ? socket.receivePiece()?.bytes.count : socket.receive()?.count
        }
        let task = Task { try await receive() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(socket.state == .open)
        try await socket.send("later")
        #expect(try await receive() == 5)
        try await socket.close()
    }

    @Test func aReceiveEndsAfterItsTimeout() async throws {
        let socket = try await WebSocket.connect(server.url("echo"))
        let error = await #expect(throws: RealtimeError.self) {
            try await socket.receive(timeout: .milliseconds(1))
        }
        #expect(error?.code == .timeout)
        #expect(socket.state == .open)
        try await socket.send("late")
        #expect(try await socket.receive(timeout: .seconds(60)) == .text("late"))
        try await socket.close()
        #expect(try await socket.receive(timeout: .zero) == nil)
    }

    /// A task that learns of the end finds that no message follows. The loop's thread stands still
    /// here from the moment at which the first task learns of it.
    @Test func afterTheCloseNoMessageIsAwaited() async throws {
        let loop = try Loop()
        try loop.start()
        let socket = try await WebSocket.connect(server.url("echo"), on: loop)
        let (tasks, continuation) = AsyncStream.makeStream(
            of: Task<Result<WebSocket.Message?, any Error>, any Error>.self)
        // On a thread of its own, because the task may continue there, and the pool have no other.
        DispatchQueue(label: "begins").async {
            continuation.yield(
                Task(executorPreference: Inline()) {
                    try await socket.close()
                    return blocking { try await socket.receive(timeout: .zero) }
                })
            continuation.finish()
        }
        for await received in tasks { #expect(try await received.value.get() == nil) }
    }

    /// They throw, because a task would wait for ever.
    @Test func messagesThatGoElsewhereAreNotWaitedFor() async throws {
        let handled = try WebSocket(server.url("echo"), handlers: WebSocket.Handlers())
        for _ in 0..<2 {
            for wait: @Sendable () async throws -> Void in [
                { for try await _ in handled.messages {} },
                { for try await _ in handled.pieces {} },
                { _ = try await handled.receive() },
            ] {
                let error = await #expect(throws: RealtimeError.self) { try await wait() }
                #expect(error?.code == .state)
                #expect(error?.message.contains("handlers") == true)
            }
            // The same once it has started.
            if handled.state == .new { try handled.start() }
        }
        var options = WebSocket.Options()
        options.deliversPieces = true
        let inPieces = try await WebSocket.connect(server.url("echo"), options: options)
        let error = await #expect(throws: RealtimeError.self) { try await inPieces.receive() }
        #expect(error?.message.contains("receivePiece") == true)
        try await inPieces.close()
    }

    /// Short messages are packed until they are taken, long ones are not.
    @Test func shortAndLongMessagesKeepTheirOrder() async throws {
        let socket = try await WebSocket.connect(server.url("echo"))
        let sizes = [0, 1, 4096, 4097, 64, 100_000, 0, 4095, 9000, 9000, 3]
        for (index, size) in sizes.enumerated() {
            let byte = UInt8(65 + index)
            try await socket.send([UInt8](repeating: byte, count: size))
            try await socket.send(
                String(repeating: Character(UnicodeScalar(byte)), count: size))
        }
        for (index, size) in sizes.enumerated() {
            let bytes = [UInt8](repeating: UInt8(65 + index), count: size)
            #expect(try await socket.receive() == .binary(bytes))
            #expect(try await socket.receive() == .text(String(decoding: bytes, as: UTF8.self)))
        }
        try await socket.close()
    }

    /// Top-level code and main-actor classes iterate on the main actor, and stay there.
    @Test @MainActor func iteratingStaysOnTheActor() async throws {
        let socket = try await WebSocket.connect(server.url("count/2000"))
        var (next, state) = (0, [Int]())
        for try await message in socket.messages {
            MainActor.assertIsolated()
            if message == .text(String(next)) { state.append(next) }
            next += 1
        }
        #expect(state == Array(0..<2000))
    }
}
