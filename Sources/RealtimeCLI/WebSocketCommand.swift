import ArgumentParser
import Realtime

struct WebSocketCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ws",
        abstract: "Sends lines over a WebSocket, and prints the messages that arrive.",
        discussion: """
            Sends each line of standard input as a text message, and writes each received message \
            as a line to standard output, with \\n in place of a line feed. Binary messages are \
            written unchanged.

            On a terminal, the end of the input (Ctrl-D) closes the connection. After the end of a \
            pipe or file, the command continues to receive until the server closes, or until \
            --count or Ctrl-C. With --close it closes the connection when the server has received \
            everything and then has been silent for --wait seconds.

            With --binary the bytes of standard input are sent unchanged: each read, of up to 64 \
            KiB, becomes one binary message. Received messages are also written unchanged, without \
            a line end.

            EXAMPLES
              realtime ws wss://example.org/feed
              echo hello | realtime ws wss://example.org/echo --count 1
              realtime ws wss://example.org/echo --binary --close < file > copy
              realtime ws wss://example.org/feed --json | jq 'select(.data).data'
            """)

    @Argument(help: "ws://… or wss://…")
    var url: String

    @Option(
        parsing: .singleValue, help: "A subprotocol to offer; may be repeated.")
    var subprotocol: [String] = []

    @Option(help: "The Origin header, which some servers check.")
    var origin: String?

    @Option(
        help: ArgumentHelp("Ping at this interval, and report round trips.", valueName: "seconds"))
    var ping: Double?

    @Flag(inversion: .prefixedNo, help: "Offer compression (permessage-deflate).")
    var compress = true

    @Flag(help: "Reconnect when the connection is lost.")
    var reconnect = false

    @Flag(help: "With --reconnect: also after the server has closed with code 1000.")
    var reconnectAfterNormalClose = false

    @Flag(help: "Send and write bytes unchanged, instead of lines.")
    var binary = false

    @Option(help: "Close after this many messages.")
    var count: Int?

    @Flag(help: "Close when the input has ended and the server has become silent.")
    var close = false

    @Option(
        help: ArgumentHelp(
            "With --close: how long the server must be silent, 1 by default; 0 closes as soon as "
                + "all is sent.",
            valueName: "seconds"))
    var wait: Double?

    @OptionGroup var shared: SharedOptions

    func validate() throws {
        if let ping { _ = try duration(ping, "--ping") }
        if reconnectAfterNormalClose, !reconnect {
            throw ValidationError("--reconnect-after-normal-close needs --reconnect.")
        }
        try SharedOptions.check(count: count)
        if wait != nil, !close { throw ValidationError("--wait needs --close.") }
        _ = try silence
    }

    func run() async throws {
        shared.prepare()
        do {
            let conversation = Conversation(
                shared.console, count: count, isBinary: binary,
                closesAfter: close ? try silence : nil)
            let interruption = Interruption { conversation.close(.goingAway) }
            try await conversation.run(url, options(), reportsPongs: ping != nil)
            try interruption.check()
        } catch {
            throw shared.console.fail(error)
        }
    }

    private var silence: Duration {
        get throws {
            try duration(orZero: wait ?? 1, "--wait") ?? .zero
        }
    }

    private func options() throws -> WebSocket.Options {
        var options = WebSocket.Options()
        options.headers = try shared.headers()
        options.subprotocols = subprotocol
        if let origin { options.setOrigin(origin) }
        options.network = try shared.network.network()
        options.openTimeout = try duration(shared.network.timeout, "--timeout")
        if let ping { options.pingInterval = try duration(ping, "--ping") }
        options.compression = compress
        if reconnect { options.reconnect = Backoff() }
        options.reconnectAfterNormalClose = reconnectAfterNormalClose
        // Lines may arrive before the connection is open, or while it is lost.
        options.offlineQueue = 1024
        return options
    }
}
