import ArgumentParser
import Realtime
import Synchronization

struct ListenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "listen",
        abstract: "Prints messages by WebSocket, events or polls, whichever works.",
        discussion: """
            The data of each message is written as it is, a line each; --json tells id and event \
            too. Which way messages come, and each change of it, is told beside them. Each message \
            comes once and in order, whatever happens on the way, until Ctrl-C or --count.

            When no transport works, all of them are tried again, with delays that grow up to 30 \
            seconds; --max-rounds limits how often. A server that was never reached ends the \
            command after the first round, unless --max-rounds is given.

            Lines of standard input are sent with --send, by the WebSocket or by POST, each \
            behind the one before.

            EXAMPLES
              realtime listen https://example.org/news
              realtime listen https://example.org/news --token "$TOKEN" --json
              realtime listen https://example.org/news --transports sse,poll --count 10
              realtime listen https://example.org/news --token "$TOKEN" --refresh-token "$REFRESH" \
            --auth-url https://example.org/token --client "$(printf id:secret | base64)"
            """)

    @Argument(help: "http://… or https://…")
    var url: String

    @Option(help: "The access token; the same as --bearer.")
    var token: String?

    @Option(help: "Spent at --auth-url when the access token is refused.")
    var refreshToken: String?

    @Option(help: ArgumentHelp("Where tokens are refreshed (OAuth 2).", valueName: "url"))
    var authURL: String?

    @Option(
        help: ArgumentHelp("base64 of \"client:secret\" for --auth-url.", valueName: "credentials"))
    var client: String?

    @Option(
        help: ArgumentHelp(
            "Which ways are tried, in this order.", valueName: "websocket,sse,poll"),
        transform: parseTransports)
    var transports = Spreadbot.Transport.allCases

    @Option(help: ArgumentHelp("Begin behind the message with this id.", valueName: "id"))
    var lastEventID: String?

    @Option(
        help: ArgumentHelp(
            "When the WebSocket is tried again from another way; 0 for never.",
            valueName: "seconds"))
    var upgrade: Double = 300

    @Option(
        help: ArgumentHelp(
            "How often in a row all transports may fail; 0 for no limit, also at the beginning.",
            valueName: "count"))
    var maxRounds: Int?

    @Flag(help: "Send the lines of standard input.")
    var send = false

    @Option(help: "End when so many messages have come.")
    var count: Int?

    @OptionGroup var shared: SharedOptions

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count is \(count); 1 is the least.") }
        if let maxRounds, maxRounds < 0 {
            throw ValidationError("--max-rounds is \(maxRounds); 0 or more is expected.")
        }
        if upgrade != 0 { _ = try duration(upgrade, "--upgrade") }
        try SharedOptions.refuse(empty: token, "--token")
        if shared.user != nil {
            throw ValidationError("--user has no place here: the Authorization is the token's.")
        }
        if token != nil, shared.bearer != nil || shared.bearerFile != nil {
            throw ValidationError("--token and --bearer are the same; give one of them.")
        }
        if (authURL == nil) != (refreshToken == nil) {
            throw ValidationError("--auth-url and --refresh-token go together.")
        }
    }

    func run() async throws {
        shared.prepare()
        do {
            let (base, path) = ListenCommand.split(url)
            let spreadbot = try Spreadbot(config: configuration(base))
            let completion = Completion()
            let interruption = Interruption { ListenCommand.close(spreadbot) }
            addHandlers(to: spreadbot, Attempts(endsUnreached: maxRounds == nil), completion)
            try shared.console.tellOffline()
            try ListenCommand.establish(spreadbot, path)
            let sending = send ? Task { await sendLines(by: spreadbot) } : nil
            defer { sending?.cancel() }
            try await completion.wait()
            try interruption.check()
        } catch {
            throw shared.console.fail(error)
        }
    }

    // The forms that do not wait.
    private static func establish(_ spreadbot: Spreadbot, _ path: String) throws {
        try spreadbot.establishConnection(path: path)
    }

    private static func close(_ spreadbot: Spreadbot) { spreadbot.closeConnection() }

    /// All is told on the loop's thread, so that it comes in the order it happened.
    private func addHandlers(
        to spreadbot: Spreadbot, _ attempts: Attempts, _ completion: Completion
    ) {
        let console = shared.console
        spreadbot.onOpen { transport, resumed, _ in
            attempts.connected()
            console.note(
                "connected by \(transport.title)" + (resumed ? ", behind the last id" : ""),
                JSONLine("open").with("transport", transport.rawValue).with("resumed", resumed))
        }
        spreadbot.onError { [unowned spreadbot] failure in
            let isEnd = attempts.failed(failure)
            guard !failure.isFatal else { return }
            if isEnd {
                completion.end(attempts.cause(failure.error))
                return ListenCommand.close(spreadbot)
            }
            ListenCommand.tell(failure, spreadbot, console)
        }
        spreadbot.onTokens { _, _ in
            console.note("the tokens were refreshed", JSONLine("tokens"))
        }
        spreadbot.onDisconnected { completion.end($0.map(attempts.cause)) }
        let left = Countdown(count)
        spreadbot.onMessage { [unowned spreadbot] id, event, data in
            guard !left.isOver else { return }
            console.tell(data, JSONLine("message").with("id", id).with("name", event))
            if left.countsDown() { ListenCommand.close(spreadbot) }
        }
    }

    /// Tells which transport failed, and which one is tried next.
    private static func tell(
        _ failure: Spreadbot.ErrorEvent, _ spreadbot: Spreadbot, _ console: Console
    ) {
        let next = spreadbot.transport
        let isRound = failure.error.code == .reconnectsExhausted
        let failed = isRound ? nil : failure.transport.map { "\($0.title): " }
        let again = !isRound && next != failure.transport ? "" : " again"
        let when = Console.when(
            failure.retryIn, spreadbot.phase == .auth ? "with fresh tokens" : Console.network)
        console.note(
            "\(failed ?? "")\(failure.error.message);"
                + " trying\(next.map { " \($0.title)" } ?? "")\(again) \(when)",
            Console.loss(failure.error, failure.retryIn, failure.attempt)
                .with("transport", failure.transport?.rawValue).with("next", next?.rawValue))
    }

    private func sendLines(by spreadbot: Spreadbot) async {
        if Console.isInputTerminal { shared.console.note("each line is a message") }
        let input = InputLines()
        while !Task.isCancelled {
            do {
                guard let line = try await input.next() else { return }
                if let text = String(validating: line, as: UTF8.self) {
                    try await spreadbot.sendMessageString(message: text)
                } else {
                    try await spreadbot.sendMessageBinary(message: line)
                }
            } catch let error as RealtimeError {
                // The next one may do better.
                shared.console.note(
                    "not sent: \(error.message)",
                    JSONLine("unsent").with("code", "\(error.code)")
                        .with("message", error.message))
                if error.code == .closed || error.code == .invalidArgument { return }
            } catch {
                return
            }
        }
    }

    private func configuration(_ base: String) throws -> Spreadbot.Configuration {
        var configuration = Spreadbot.Configuration(baseURL: base)
        configuration.accessToken = try token ?? shared.token() ?? ""
        configuration.refreshToken = refreshToken ?? ""
        configuration.authURL = authURL
        configuration.base64Credentials = client ?? ""
        configuration.transports = transports
        configuration.maxRounds = maxRounds ?? 0
        configuration.lastEventID = lastEventID ?? ""
        configuration.headers = shared.header
        configuration.network = shared.network.network
        configuration.connectTimeout = try duration(shared.network.timeout, "--timeout")
        configuration.upgradeInterval =
            upgrade == 0 ? nil : try duration(upgrade, "--upgrade")
        return configuration
    }

    /// Scheme and authority, and what is behind them.
    private static func split(_ url: String) -> (base: String, path: String) {
        let bytes = url.utf8
        let (slash, mark) = (UInt8(ascii: "/"), UInt8(ascii: "?"))
        let slashes = bytes.indices.filter { bytes[$0] == slash || bytes[$0] == mark }
        // Two belong to the scheme.
        guard slashes.count > 2 else { return (url, "") }
        let path = url[slashes[2]...].utf8.drop { $0 == slash }
        return (String(url[..<slashes[2]]), String(Substring(path)))
    }
}

/// What came of the attempts so far. Used on the loop's thread, and locked for the compiler.
private final class Attempts: Sendable {
    private struct State {
        var hasConnected = false
        var last: RealtimeError?
        /// The answer's to the last attempt of all, whose own error is not reported.
        var lastStatus = 0
    }

    private let endsUnreached: Bool
    private let state = Mutex(State())

    /// - Parameter endsUnreached: one round is enough for a server that was never reached.
    init(endsUnreached: Bool) { self.endsUnreached = endsUnreached }

    func connected() { state.withLock { $0.hasConnected = true } }

    /// - Returns: whether that is the end.
    func failed(_ failure: Spreadbot.ErrorEvent) -> Bool {
        state.withLock { state in
            if failure.error.code == .reconnectsExhausted {
                state.lastStatus = failure.httpStatus
                return endsUnreached && !state.hasConnected
            }
            if failure.transport != nil { state.last = failure.error }
            return false
        }
    }

    /// The error of the end. When there never was a connection its kind is that of the last
    /// failure, so that the exit code says whether the server was reached.
    func cause(_ error: RealtimeError) -> RealtimeError {
        state.withLock { state in
            guard error.code == .reconnectsExhausted, !state.hasConnected else { return error }
            if error.isOfProxy {
                return RealtimeError(.proxy, error.message, response: error.response)
            }
            if state.lastStatus > 0 { return RealtimeError(.httpStatus, error.message) }
            guard let last = state.last else { return error }
            return RealtimeError(last.code, error.message, response: last.response)
        }
    }
}

extension Spreadbot.Transport {
    fileprivate var title: String {
        switch self {
        case .webSocket: "WebSocket"
        case .sse: "Server-Sent Events"
        case .poll: "long polls"
        }
    }
}

private func parseTransports(_ text: String) throws -> [Spreadbot.Transport] {
    try text.split(separator: ",", omittingEmptySubsequences: false).map { name in
        switch name {
        case "websocket": .webSocket
        case "sse": .sse
        case "poll": .poll
        default:
            throw ValidationError("\"\(name)\" is no transport: websocket, sse and poll are.")
        }
    }
}
