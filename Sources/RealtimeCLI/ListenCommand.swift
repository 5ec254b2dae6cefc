import ArgumentParser
import Realtime

struct ListenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "listen",
        abstract: "Prints messages by WebSocket, events or polls, whichever works.",
        discussion: """
            The data of each message is written as it is, a line each; --json tells id and event \
            too. Which way messages come, and each change of it, is told beside them. Each message \
            comes once and in order, whatever happens on the way, until Ctrl-C or --count.

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

    @Flag(help: "Send the lines of standard input.")
    var send = false

    @Option(help: "End when so many messages have come.")
    var count: Int?

    @OptionGroup var shared: SharedOptions

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count is \(count); 1 is the least.") }
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
            addHandlers(to: spreadbot, completion)
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
    private func addHandlers(to spreadbot: Spreadbot, _ completion: Completion) {
        let console = shared.console
        spreadbot.onOpen { transport, resumed in
            console.note(
                "connected by \(transport.title)" + (resumed ? ", behind the last id" : ""),
                JSONLine("open").with("transport", transport.rawValue).with("resumed", resumed))
        }
        spreadbot.onError { [unowned spreadbot] failure in
            guard !failure.isFatal else { return }
            console.tellLoss(
                failure.error, failure.retryIn, failure.attempt,
                transport: failure.transport?.rawValue,
                without: spreadbot.phase == .auth ? "with fresh tokens" : Console.network)
        }
        spreadbot.onTokens { _, _ in
            console.note("the tokens were refreshed", JSONLine("tokens"))
        }
        spreadbot.onDisconnected { completion.end($0) }
        let left = Countdown(count)
        spreadbot.onMessage { [unowned spreadbot] id, event, data in
            guard !left.isOver else { return }
            console.tell(data, JSONLine("message").with("id", id).with("name", event))
            if left.countsDown() { ListenCommand.close(spreadbot) }
        }
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
