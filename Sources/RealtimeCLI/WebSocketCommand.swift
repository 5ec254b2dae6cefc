import ArgumentParser
import Realtime

struct WebSocketCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ws",
        abstract: "Sends lines over a WebSocket, and prints what comes.",
        discussion: """
            Each line of standard input is a text message, and each message received is a line \
            of standard output.

            On a terminal the end of the input (Ctrl-D) closes the connection. After the end of a \
            pipe or file the command keeps receiving until the server closes, --count is reached \
            or Ctrl-C comes. With --close it waits until the server has received everything and \
            then has been silent for --wait seconds, and closes the connection.

            With --binary the bytes of standard input are sent as they are: each read, of up to \
            64 KiB, becomes one binary message. Messages received are written as they are, too, \
            without a line end.

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

    @Option(help: "The Origin header, which servers may ask of browsers.")
    var origin: String?

    @Option(help: ArgumentHelp("Ping so often, and tell each round trip.", valueName: "seconds"))
    var ping: Double?

    @Flag(inversion: .prefixedNo, help: "Offer compression (permessage-deflate).")
    var compress = true

    @Flag(help: "Come back when the connection is lost, while there is a network.")
    var reconnect = false

    @Flag(help: "With --reconnect: also reconnect after the server closed with code 1000.")
    var reconnectAfterNormalClose = false

    @Flag(help: "Send bytes as they are read, up to 64 KiB a message, and write them as they come.")
    var binary = false

    @Option(help: "Close when so many messages have come.")
    var count: Int?

    @Flag(help: "Close after the input has ended and the server has become silent.")
    var close = false

    @Option(
        help: ArgumentHelp(
            "With --close: how long the server must be silent; 0 closes as soon as all is sent.",
            valueName: "seconds"))
    var wait: Double = 1

    @OptionGroup var shared: SharedOptions

    func validate() throws {
        if let ping { _ = try duration(ping, "--ping") }
        if reconnectAfterNormalClose, !reconnect {
            throw ValidationError("--reconnect-after-normal-close needs --reconnect.")
        }
        if let count, count < 1 { throw ValidationError("--count is \(count); 1 is the least.") }
        if wait != 0 { _ = try duration(wait, "--wait") }
    }

    func run() async throws {
        shared.prepare()
        do {
            let quiet = wait == 0 ? .zero : try duration(wait, "--wait")
            let conversation = Conversation(
                shared.console, count: count, isBinary: binary, closesAfter: close ? quiet : nil)
            let interruption = Interruption { conversation.close(.goingAway) }
            try await conversation.run(url, options(), tellsPongs: ping != nil)
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
        options.reconnectAfterNormalClose = reconnectAfterNormalClose
        // Lines may be there before the connection is, and while it is away.
        options.offlineQueue = 1024
        return options
    }
}
