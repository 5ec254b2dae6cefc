import Realtime
import Synchronization

/// One WebSocket between standard input and output. What comes is told on the loop's thread, so
/// that all of it comes in the order it happened; a reader that is slow slows the peer down.
final class Conversation: Sendable {
    private struct State {
        /// Its handlers hold the conversation: let go at the end.
        var socket: WebSocket?
        /// Why it ended, or will have, unless it comes back.
        var failure: RealtimeError?
        /// The end is what was wanted, whatever the peer says.
        var isAskedFor = false
    }

    private let console: Console
    private let left: Countdown
    private let state = Mutex(State())
    private let mayEnter = Gate()

    /// - Parameter count: how many messages are wanted; nil for all.
    init(_ console: Console, count: Int?) {
        self.console = console
        left = Countdown(count)
    }

    /// Begins to close; also before the connection stands.
    func close(_ code: CloseCode) {
        let socket = state.withLock { state in
            state.isAskedFor = true
            return state.socket
        }
        try? socket?.beginClose(code)
    }

    /// Until the connection is over.
    /// - Throws: why it failed; an `ExitStatus` for a close that is an error.
    func run(
        _ url: String, _ options: WebSocket.Options, tellsPongs: Bool, isBinary: Bool,
        closesAtEnd: Bool
    ) async throws {
        let socket = try WebSocket(url, options: options, handlers: handlers(tellsPongs))
        state.withLock { $0.socket = socket }
        defer { state.withLock { $0.socket = nil } }
        try socket.start()
        if state.withLock({ $0.isAskedFor }) { close(.goingAway) }
        let sender = Task { try await send(by: socket, isBinary, closesAtEnd) }
        defer { sender.cancel() }
        let closing = try await socket.waitUntilClosed()
        let (failure, isAskedFor) = state.withLock { ($0.failure, $0.isAskedFor) }
        if let failure { throw failure }
        console.note(
            "\(closing)",
            JSONLine("close").with("code", Int(closing.code.rawValue))
                .with("reason", closing.reason).with("clean", closing.isClean))
        let isGood = [.normal, .goingAway, .noStatus].contains(closing.code)
        if !isGood && !isAskedFor { throw ExitStatus.closedWithError }
    }

    /// Until the input ends. A failure is told by the side that receives.
    private func send(
        by socket: WebSocket, _ isBinary: Bool, _ closesAtEnd: Bool
    ) async throws {
        if Console.isInputTerminal { console.note("each line is a message; Ctrl-D closes") }
        let lines = InputLines()
        while let line = try await nextLine(of: lines) {
            await mayEnter.wait()
            if isBinary {
                try await socket.send(line)
            } else if let text = String(validating: line, as: UTF8.self) {
                try await socket.send(text)
            } else {
                return fail(
                    RealtimeError(
                        .invalidUTF8,
                        "line \(lines.count) of the input is not UTF-8; --binary sends any bytes"))
            }
        }
        guard closesAtEnd || Console.isInputTerminal else { return }
        await mayEnter.wait()
        close(.normal)
    }

    private func nextLine(of lines: InputLines) async throws -> [UInt8]? {
        do {
            return try await lines.next()
        } catch let error as RealtimeError {
            fail(error)
            throw error
        }
    }

    private func fail(_ error: RealtimeError) {
        close(.normal)
        state.withLock { $0.failure = error }
    }

    // MARK: On the loop's thread

    private func handlers(_ tellsPongs: Bool) -> WebSocket.Handlers {
        var handlers = WebSocket.Handlers()
        handlers.open = { self.opened($0) }
        handlers.message = { self.received($0, $1.withUnsafeBytes { Array($0) }) }
        handlers.error = { error in self.state.withLock { $0.failure = error } }
        handlers.lost = { self.lost($0, $1, $2) }
        // Whoever waits to send is told by what fails then.
        handlers.close = { _ in self.mayEnter.setOpen(true) }
        if tellsPongs {
            handlers.pong = { [console] roundTrip in
                console.note(
                    "round trip \((roundTrip / .microseconds(1)).rounded() / 1000) ms",
                    JSONLine("pong").with("round_trip_ms", roundTrip))
            }
        }
        return handlers
    }

    private func opened(_ agreement: WebSocket.Agreement) {
        console.note(
            "connected"
                + (agreement.subprotocol.isEmpty ? "" : ", speaking \(agreement.subprotocol)")
                + (agreement.extensions.isEmpty ? "" : ", with \(agreement.extensions)"),
            JSONLine("open").with("subprotocol", agreement.subprotocol)
                .with("extensions", agreement.extensions))
        mayEnter.setOpen(true)
    }

    private func received(_ kind: MessageKind, _ bytes: [UInt8]) {
        guard !left.isOver else { return }
        console.tell(
            bytes, isText: kind == .text,
            JSONLine("message").with("kind", kind == .text ? "text" : "binary"))
        if left.countsDown() { close(.normal) }
    }

    private func lost(_ how: WebSocket.Closing, _ delay: Duration?, _ attempt: Int) {
        mayEnter.setOpen(false)
        let failure = state.withLock { state in
            defer { state.failure = nil }
            return state.failure
        }
        console.note(
            "\(failure?.message ?? "\(how)"); trying again \(Console.when(delay))",
            JSONLine("lost").with("code", Int(how.code.rawValue)).with("reason", how.reason)
                .with("message", failure?.message).with("delay_ms", delay)
                .with("attempt", attempt))
    }
}
