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
        /// When the last message came, or the server confirmed that it has all of ours.
        var lastNews = ContinuousClock.now
        var isConfirmed = false
        /// A message is being written.
        var isReceiving = false
    }

    private let console: Console
    private let left: Countdown
    private let isCounting: Bool
    private let isBinary: Bool
    private let closesAfter: Duration?
    private let state = Mutex(State())
    private let mayEnter = Gate()

    /// How long a hint waits that the input has ended: many servers close by then.
    private static let hintDelay = Duration.seconds(1)
    /// How long a server is waited for that does not answer pings.
    private static let patience = Duration.seconds(20)

    /// - Parameters:
    ///   - count: how many messages are wanted; nil for all.
    ///   - isBinary: the input's bytes are sent as they are read, and not its lines.
    ///   - closesAfter: how long the server must be silent after the end of the input for the
    ///     connection to be closed; nil keeps it open.
    init(_ console: Console, count: Int?, isBinary: Bool, closesAfter: Duration?) {
        self.console = console
        left = Countdown(count)
        isCounting = count != nil
        self.isBinary = isBinary
        self.closesAfter = closesAfter
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
    func run(_ url: String, _ options: WebSocket.Options, tellsPongs: Bool) async throws {
        let socket = try WebSocket(url, options: options, handlers: handlers(tellsPongs))
        state.withLock { $0.socket = socket }
        defer { state.withLock { $0.socket = nil } }
        try socket.start()
        if state.withLock({ $0.isAskedFor }) { close(.goingAway) }
        let sender = Task { try await send(by: socket) }
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
    private func send(by socket: WebSocket) async throws {
        if Console.isInputTerminal { console.note("each line is a message; Ctrl-D closes") }
        let hasSent = isBinary ? try await sendBytes(by: socket) : try await sendLines(by: socket)
        if Console.isInputTerminal {
            await mayEnter.wait()
            close(.normal)
        } else if let closesAfter {
            await mayEnter.wait()
            try await waitForSilence(of: socket, closesAfter)
            close(.normal)
        } else if hasSent, !isCounting {
            try await Task.sleep(for: Conversation.hintDelay)
            console.note(
                "the input has ended; receiving until the server closes, or Ctrl-C (--close and"
                    + " --count end earlier)")
        }
    }

    /// - Returns: whether there was anything to send.
    private func sendBytes(by socket: WebSocket) async throws -> Bool {
        let input = InputLines()
        var hasSent = false
        while let bytes = await input.nextBytes() {
            await mayEnter.wait()
            try await socket.send(bytes)
            hasSent = true
        }
        return hasSent
    }

    /// - Returns: whether there was anything to send.
    private func sendLines(by socket: WebSocket) async throws -> Bool {
        let lines = InputLines()
        var hasSent = false
        while let line = try await nextLine(of: lines) {
            await mayEnter.wait()
            if let text = String(validating: line, as: UTF8.self) {
                try await socket.send(text)
            } else {
                let error = RealtimeError(
                    .invalidUTF8,
                    "line \(lines.count) of the input is not UTF-8; --binary sends any bytes")
                fail(error)
                throw error
            }
            hasSent = true
        }
        return hasSent
    }

    /// A close frame ends what the server sends, too: many stop to answer what they have not
    /// answered yet (RFC 6455 §5.5.1). So this waits until the server has received everything, as
    /// its pong says, and then has sent nothing for this long.
    private func waitForSilence(of socket: WebSocket, _ silence: Duration) async throws {
        guard silence > .zero else { return }
        let confirmation = Task {
            _ = try await socket.ping()
            state.withLock { state in
                state.lastNews = .now
                state.isConfirmed = true
            }
        }
        defer { confirmation.cancel() }
        var patience = ContinuousClock.now + Conversation.patience
        while true {
            let (news, isConfirmed, isReceiving) = state.withLock {
                ($0.lastNews, $0.isConfirmed, $0.isReceiving)
            }
            let now = ContinuousClock.now
            if socket.bufferedBytes > 0 { patience = now + Conversation.patience }
            let isWaiting = isReceiving || !isConfirmed && now < patience
            let left = isWaiting ? silence : news + silence - now
            guard left > .zero else { return }
            try await Task.sleep(for: min(left, silence))
        }
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
        // First: the connection may be over before this goes on.
        state.withLock { $0.failure = error }
        close(.normal)
    }

    // MARK: On the loop's thread

    private func handlers(_ tellsPongs: Bool) -> WebSocket.Handlers {
        var handlers = WebSocket.Handlers()
        handlers.open = { self.tell($0) }
        handlers.message = { self.received($0, $1.withUnsafeBytes { Array($0) }) }
        handlers.error = { self.failed($0) }
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

    private func tell(_ opened: Opened) {
        console.note(
            "connected"
                + (opened.subprotocol.isEmpty ? "" : ", speaking \(opened.subprotocol)")
                + (opened.extensions.isEmpty ? "" : ", with \(opened.extensions)"),
            JSONLine("open").with("subprotocol", opened.subprotocol)
                .with("extensions", opened.extensions))
        mayEnter.setOpen(true)
    }

    private func received(_ kind: MessageKind, _ bytes: [UInt8]) {
        guard !left.isOver else { return }
        // A reader that is slow does not make the server silent.
        state.withLock { $0.isReceiving = true }
        console.tell(
            bytes, isText: kind == .text, isLine: !isBinary,
            JSONLine("message").with("kind", kind == .text ? "text" : "binary"))
        state.withLock { state in
            state.isReceiving = false
            state.lastNews = .now
        }
        if left.countsDown() { close(.normal) }
    }

    private func failed(_ event: WebSocket.ErrorEvent) {
        // An end in order is no failure.
        let failure = event.error.code == .closed ? nil : event.error
        guard !event.isFatal else { return state.withLock { $0.failure = failure } }
        mayEnter.setOpen(false)
        let how = event.closing
        console.note(
            "\(failure?.message ?? "\(how)"); trying again \(Console.when(event.retryIn))",
            JSONLine("lost").with("code", Int(how.code.rawValue)).with("reason", how.reason)
                .with("message", failure?.message).with("delay_ms", event.retryIn)
                .with("attempt", event.attempt))
    }
}
