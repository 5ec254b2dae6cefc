import ArgumentParser
import Realtime
import Synchronization

struct ListenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "listen",
        abstract: "Prints messages by WebSocket, events or long polls, whichever works.",
        discussion: """
            Writes the data of each message as a line, with \\n in place of a line feed, until \
            Ctrl-C or --count; --json adds id and event. Each message arrives once and in order, \
            also when the transport changes. The transport, and each change of it, is reported on \
            standard error.

            When no transport works, the command tries all of them again, after delays that grow \
            up to 30 seconds; --max-rounds limits how often. If none of them has ever worked, the \
            command does not repeat this, unless --max-rounds is given.

            With --send, lines of standard input are sent in order, by the WebSocket or by POST.

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

    @Option(help: "Sent to --auth-url when the access token is refused.")
    var refreshToken: String?

    @Option(help: ArgumentHelp("Where tokens are refreshed (OAuth 2).", valueName: "url"))
    var authURL: String?

    @Option(
        help: ArgumentHelp("base64 of \"client:secret\" for --auth-url.", valueName: "credentials"))
    var client: String?

    @Option(
        help: ArgumentHelp(
            "The transports to try, in this order.", valueName: "websocket,sse,poll"),
        transform: parseTransports)
    var transports = Spreadbot.Transport.allCases

    @Option(help: ArgumentHelp("Start after the message with this id.", valueName: "id"))
    var lastEventID: String?

    @Option(
        help: ArgumentHelp(
            "Time between attempts to return to the WebSocket, 300 by default; 0 for never.",
            valueName: "seconds"))
    var upgrade: Double?

    @Option(
        help: ArgumentHelp(
            "How often in a row all transports may fail; 0 for no limit.",
            valueName: "count"))
    var maxRounds: Int?

    @Flag(help: "Send the lines of standard input.")
    var send = false

    @Option(help: "End after this many messages.")
    var count: Int?

    @OptionGroup var shared: SharedOptions

    func validate() throws {
        try SharedOptions.check(count: count)
        if let maxRounds, maxRounds < 0 {
            throw ValidationError("--max-rounds is \(maxRounds); 0 or more is expected.")
        }
        if let upgrade, try duration(orZero: upgrade, "--upgrade") != nil,
            !transports.contains(.webSocket) || Set(transports).count == 1
        {
            throw ValidationError("--upgrade needs websocket and another one in --transports.")
        }
        try SharedOptions.refuse(empty: token, "--token")
        try SharedOptions.refuse(empty: refreshToken, "--refresh-token")
        if shared.user != nil {
            throw ValidationError("--user cannot be used here; Authorization is for the token.")
        }
        if token != nil, shared.bearer != nil || shared.bearerFile != nil {
            throw ValidationError("--token and --bearer are the same; use one of them.")
        }
        if (authURL == nil) != (refreshToken == nil) {
            throw ValidationError("--auth-url and --refresh-token need each other.")
        }
        if client != nil, authURL == nil { throw ValidationError("--client needs --auth-url.") }
    }

    func run() async throws {
        shared.prepare()
        do {
            let (base, path) = ListenCommand.split(url)
            let spreadbot = try Spreadbot(config: configuration(base))
            let completion = Completion()
            let interruption = Interruption { spreadbot.closeConnection() }
            addHandlers(to: spreadbot, Attempts(endsUnreached: maxRounds == nil), completion)
            spreadbot.establishConnection(path: path)
            let sending = send ? Task { await sendLines(by: spreadbot) } : nil
            defer { sending?.cancel() }
            try await completion.wait()
            try interruption.check()
        } catch {
            throw shared.console.fail(error)
        }
    }

    /// Everything is written on the loop's thread, so the output has the order of the events.
    private func addHandlers(
        to spreadbot: Spreadbot, _ attempts: Attempts, _ completion: Completion
    ) {
        let console = shared.console
        spreadbot.onOpen { transport, resumed, _ in
            attempts.connected()
            console.note(
                "connected by \(transport.title)" + (resumed ? ", after the last id" : ""),
                JSONLine("open").with("transport", transport.rawValue).with("resumed", resumed))
        }
        spreadbot.onError { [weak spreadbot] failure in
            guard let spreadbot else { return }
            let isEnd = attempts.failed(failure)
            guard !failure.isFatal else { return }
            if isEnd {
                completion.end(attempts.cause(failure.error))
                return spreadbot.closeConnection()
            }
            ListenCommand.report(failure, spreadbot, console)
        }
        spreadbot.onTokens { _, _ in
            console.note("the tokens were refreshed", JSONLine("tokens"))
        }
        spreadbot.onDisconnected { completion.end($0.map(attempts.cause)) }
        let left = Countdown(count)
        spreadbot.onMessage { [weak spreadbot] id, event, data in
            guard let spreadbot else { return }
            guard !left.isOver else { return }
            console.emit(data, JSONLine("message").with("id", id).with("name", event))
            if left.countsDown() { spreadbot.closeConnection() }
        }
    }

    /// Reports which transport failed, and which one is next.
    private static func report(
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
                // The next line may succeed.
                shared.console.note(
                    "not sent: \(error.message)",
                    JSONLine("unsent").with("code", "\(error.code)")
                        .with(message: error.message))
                if error.code == .closed || error.code == .invalidArgument { return }
            } catch {
                return
            }
        }
    }

    private func configuration(_ base: String) throws -> Spreadbot.Configuration {
        var configuration = Spreadbot.Configuration(baseURL: base)
        configuration.executor = .loop
        configuration.accessToken = try token ?? shared.token() ?? ""
        configuration.refreshToken = refreshToken ?? ""
        configuration.authURL = authURL
        configuration.base64Credentials = client ?? ""
        configuration.transports = transports
        configuration.maxRounds = maxRounds ?? 0
        configuration.lastEventID = lastEventID ?? ""
        configuration.headers = shared.header
        configuration.network = try shared.network.network()
        configuration.connectTimeout = try duration(shared.network.timeout, "--timeout")
        configuration.upgradeInterval = try duration(orZero: upgrade ?? 300, "--upgrade")
        return configuration
    }

    /// Splits a URL into scheme with authority, and the rest.
    private static func split(_ url: String) -> (base: String, path: String) {
        let bytes = url.utf8
        let (slash, mark) = (UInt8(ascii: "/"), UInt8(ascii: "?"))
        let slashes = bytes.indices.filter { bytes[$0] == slash || bytes[$0] == mark }
        // The first two belong to the scheme.
        guard slashes.count > 2 else { return (url, "") }
        let path = url[slashes[2]...].utf8.drop { $0 == slash }
        return (String(url[..<slashes[2]]), String(Substring(path)))
    }
}

/// The results of the attempts so far. Only the loop's thread uses it; the lock makes it Sendable.
private final class Attempts: Sendable {
    private struct State {
        var hasConnected = false
        var last: RealtimeError?
        /// The status of the last response of a round, or 0. Its error is not reported by itself.
        var lastStatus = 0
    }

    private let endsUnreached: Bool
    private let state = Mutex(State())

    /// - Parameter endsUnreached: end after one round if the server was never reached.
    init(endsUnreached: Bool) { self.endsUnreached = endsUnreached }

    func connected() { state.withLock { $0.hasConnected = true } }

    /// - Returns: whether the command ends.
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

    /// Returns the error that ends the command. If there never was a connection, it has the code of
    /// the last failure, so that the exit code says whether the server was reached.
    func cause(_ error: RealtimeError) -> RealtimeError {
        state.withLock { state in
            guard error.code == .reconnectsExhausted, !state.hasConnected else { return error }
            if error.isFromProxy {
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
            throw ValidationError("\"\(name)\" is not a transport: websocket, sse and poll are.")
        }
    }
}
