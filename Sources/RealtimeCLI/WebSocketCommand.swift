import ArgumentParser
import Realtime

struct WebSocketCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ws",
        abstract: "Sends lines over a WebSocket, and prints what comes.",
        discussion: """
            Each line of standard input is a text message, and each message received is a line \
            of standard output. On a terminal the end of the input (Ctrl-D) closes the \
            connection. In a pipe it goes on receiving, until the peer closes, --count is \
            reached or Ctrl-C comes; with --close it closes when all is sent.

            EXAMPLES
              realtime ws wss://example.org/feed
              echo hello | realtime ws wss://example.org/echo --count 1
              realtime ws wss://example.org/feed --json | jq 'select(.data).data'
            """)

    @Argument(help: "ws://… or wss://…")
    var url: String

    @Option(
        parsing: .singleValue, help: "A subprotocol to offer; may be repeated.")
    var subprotocol: [String] = []

    @Option(help: "The Origin header, which servers may ask of browsers.")
    var origin: String?

    @Option(help: ArgumentHelp("Ping so often, and tell each round trip.", valueName: "seconds"))
    var ping: Double?

    @Flag(inversion: .prefixedNo, help: "Offer compression (permessage-deflate).")
    var compress = true

    @Flag(help: "Come back when the connection is lost, while there is a network.")
    var reconnect = false

    @Flag(help: "Send lines as binary messages.")
    var binary = false

    @Option(help: "Close when so many messages have come.")
    var count: Int?

    @Flag(help: "Close when the input has ended and all is sent.")
    var close = false

    @OptionGroup var shared: SharedOptions

    func validate() throws {
        if let ping { _ = try duration(ping, "--ping") }
        if let count, count < 1 { throw ValidationError("--count is \(count); 1 is the least.") }
    }

    func run() async throws {
        shared.prepare()
        do {
            let conversation = Conversation(shared.console, count: count)
            let interruption = Interruption { conversation.close(.goingAway) }
            try await conversation.run(
                url, options(), tellsPongs: ping != nil, isBinary: binary, closesAtEnd: close)
            try interruption.check()
        } catch {
            throw shared.console.fail(error)
        }
    }

    private func options() throws -> WebSocket.Options {
        var options = WebSocket.Options()
        options.headers = try shared.headers()
        options.subprotocols = subprotocol
        if let origin { options.setOrigin(origin) }
        options.network = shared.network.network
        options.openTimeout = try duration(shared.network.timeout, "--timeout")
        if let ping { options.pingInterval = try duration(ping, "--ping") }
        options.compression = compress
        if reconnect { options.reconnect = Backoff() }
        // Lines may be there before the connection is, and while it is away.
        options.offlineQueue = 1024
        return options
    }
}
