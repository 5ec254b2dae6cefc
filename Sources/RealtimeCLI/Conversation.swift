import Realtime
import Synchronization

/// One WebSocket between standard input and output. Everything is written on the loop's thread, so
/// the output has the order of the events, and a slow reader slows the peer down.
final class Conversation: Sendable {
    private struct State {
        /// Its handlers retain the conversation, so it is released at the end.
        var socket: WebSocket?
        /// The last failure, which is the cause of the end unless the socket reconnects.
        var failure: RealtimeError?
        /// We asked for the end, so the peer's close code does not matter.
        var isAskedFor = false
        /// When the last message arrived, or the server confirmed that it has all of our messages.
        var lastNews = ContinuousClock.now
        var isConfirmed = false
    }

    private let console: Console
    private let left: Countdown
    private let isCounting: Bool
    private let isBinary: Bool
    private let closesAfter: Duration?
    private let state = Mutex(State())
    private let connected = Gate()

    /// The delay of the hint that the input has ended. Many servers close the connection sooner.
    private static let hintDelay = Duration.seconds(1)
    /// How long to wait for the pong.
    private static let patience = Duration.seconds(20)

    /// - Parameters:
    ///   - count: how many messages to receive; nil for all.
    ///   - isBinary: whether the input is sent as bytes, as they are read, instead of lines.
    ///   - closesAfter: after the end of the input, how long the server must be silent before the
    ///     connection is closed; nil keeps it open.
    init(_ console: Console, count: Int?, isBinary: Bool, closesAfter: Duration?) {
        self.console = console
        left = Countdown(count)
        isCounting = count != nil
        self.isBinary = isBinary
        self.closesAfter = closesAfter
    }

    /// Starts to close the connection, even if it is not open yet.
    func close(_ code: CloseCode) {
        let socket = state.withLock { state in
            state.isAskedFor = true
            return state.socket
        }
        try? socket?.beginClose(code)
    }

    /// Runs until the connection has ended.
    /// - Throws: the failure, or an `ExitStatus` if the close code is an error.
    func run(_ url: String, _ options: WebSocket.Options, reportsPongs: Bool) async throws {
        var options = options
        options.executor = .loop
        let socket = try WebSocket(url, options: options, handlers: handlers(reportsPongs))
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

    /// Sends until the input ends. The receiving side reports failures.
    private func send(by socket: WebSocket) async throws {
        if Console.isInputTerminal { console.note("each line is a message; Ctrl-D closes") }
        let hasSent = isBinary ? try await sendBytes(by: socket) : try await sendLines(by: socket)
        if Console.isInputTerminal {
            await connected.wait()
            close(.normal)
        } else if let closesAfter {
            await connected.wait()
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
            await connected.wait()
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
            await connected.wait()
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

    /// Waits until the server has received everything, which its pong confirms, and then has been
    /// silent for this time. A close frame sent earlier could cost messages: after it, many servers
    /// send nothing more (RFC 6455 §5.5.1).
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
            let (news, isConfirmed) = state.withLock { ($0.lastNews, $0.isConfirmed) }
            // While a slow reader blocks us, the server is not silent.
            let (isWriting, writtenAt) = Output.progress
            let now = ContinuousClock.now
            if socket.bufferedBytes > 0 { patience = now + Conversation.patience }
            let isWaiting = isWriting || !isConfirmed && now < patience
            let left = isWaiting ? silence : max(news, writtenAt) + silence - now
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
        // Before `close`, after which the connection may end at any time.
        state.withLock { $0.failure = error }
        close(.normal)
    }

    // MARK: On the loop's thread

    private func handlers(_ reportsPongs: Bool) -> WebSocket.Handlers {
        var handlers = WebSocket.Handlers()
        handlers.open = { self.opened($0) }
        handlers.message = { self.received($0, $1.withUnsafeBytes { Array($0) }) }
        handlers.error = { self.failed($0) }
        // A waiting sender continues, and its send fails.
        handlers.close = { _ in self.connected.setOpen(true) }
        if reportsPongs {
            handlers.pong = { [console] roundTrip in
                console.note(
                    "round trip \((roundTrip / .microseconds(1)).rounded() / 1000) ms",
                    JSONLine("pong").with("round_trip_ms", roundTrip))
            }
        }
        return handlers
    }

    private func opened(_ opened: Opened) {
        console.note(
            "connected"
                + (opened.subprotocol.isEmpty ? "" : ", speaking \(opened.subprotocol)")
                + (opened.extensions.isEmpty ? "" : ", with \(opened.extensions)"),
            JSONLine("open").with("subprotocol", opened.subprotocol)
                .with("extensions", opened.extensions))
        connected.setOpen(true)
    }

    private func received(_ kind: MessageKind, _ bytes: [UInt8]) {
        guard !left.isOver else { return }
        console.emit(
            bytes, isText: kind == .text, as: isBinary ? .raw : .line,
            JSONLine("message").with("kind", kind == .text ? "text" : "binary"))
        state.withLock { $0.lastNews = .now }
        if left.countsDown() { close(.normal) }
    }

    private func failed(_ event: WebSocket.ErrorEvent) {
        // A normal close is not a failure.
        let failure = event.error.code == .closed ? nil : event.error
        guard !event.isFatal else { return state.withLock { $0.failure = failure } }
        connected.setOpen(false)
        let how = event.closing
        console.note(
            "\(failure?.message ?? "\(how)"); trying again \(Console.when(event.retryIn))",
            JSONLine("lost").with("code", Int(how.code.rawValue)).with("reason", how.reason)
                .with(message: failure?.message).with("delay_ms", event.retryIn)
                .with("attempt", event.attempt))
    }
}
