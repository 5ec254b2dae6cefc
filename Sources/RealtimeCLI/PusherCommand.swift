import ArgumentParser
import Realtime

struct PusherCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pusher",
        abstract: "Prints the events of Pusher channels.",
        discussion: """
            Writes each event as a line: channel, name and data, with \\n in place of a line feed, \
            until Ctrl-C or --count; --json writes an object. When a member comes to a presence \
            channel or leaves it, that is the event pusher:member_added or pusher:member_removed. \
            Each change of the connection's state is reported on standard error.

            Channels that begin with private- or presence- need --auth-endpoint or --secret-file, \
            and those that begin with private-encrypted- need --auth-endpoint. The headers of -H, \
            --bearer and --user are sent to the endpoint.

            The command reconnects when the connection is lost, unless the server forbids it or \
            --no-reconnect is given. If the first attempt fails, it ends.

            EXAMPLES
              realtime pusher --key KEY --cluster eu orders
              realtime pusher --key KEY --cluster eu presence-lobby --json \
            --auth-endpoint https://example.org/pusher/auth --bearer "$TOKEN"
              realtime pusher --key demo --host 127.0.0.1 --port 8080 --no-tls private-chat \
            --secret-file secret.txt --trigger client-typing --data '{"on":true}' --count 0
            """)

    @Argument(help: ArgumentHelp("The channels to subscribe to.", valueName: "channel"))
    var channels: [String]

    @OptionGroup(title: "Server")
    var server: PusherServerOptions

    @OptionGroup(title: "Authorization")
    var authorization: PusherAuthorizationOptions

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("Print only events of this name; may be repeated.", valueName: "name"))
    var event: [String] = []

    @Option(
        help: ArgumentHelp(
            "Send this client event to each channel, once it is subscribed.", valueName: "name"))
    var trigger: String?

    @Option(
        name: [.short, .long],
        help: ArgumentHelp(
            "The data of --trigger: JSON, or else a text; @ and a name for a file with it.",
            valueName: "json"))
    var data: String?

    @Flag(inversion: .prefixedNo, help: "Reconnect when the connection is lost.")
    var reconnect = true

    @Option(help: "End after this many events; with --trigger also 0, which ends when it is sent.")
    var count: Int?

    @OptionGroup var shared: SharedOptions

    func validate() throws {
        if channels.isEmpty { throw ValidationError("A channel is expected.") }
        if count != 0 || trigger == nil { try SharedOptions.check(count: count) }
        try checkTrigger()
        if data != nil, trigger == nil { throw ValidationError("--data needs --trigger.") }
        if data == "@" {
            throw ValidationError("--data @ names no file; '\"@\"' is the text.")
        }
        if event.contains("") { throw ValidationError("--event is \"\"; events have a name.") }
        let hasCredentials =
            !shared.header.isEmpty || shared.user != nil || shared.bearer != nil
            || shared.bearerFile != nil
        if hasCredentials, authorization.authEndpoint == nil {
            throw ValidationError("-H, --bearer and --user need --auth-endpoint.")
        }
    }

    private func checkTrigger() throws {
        guard let trigger else { return }
        guard trigger.hasPrefix("client-") else {
            throw ValidationError("--trigger \(trigger): its name must begin with client-.")
        }
        for channel in channels {
            let isEncrypted = channel.hasPrefix("private-encrypted-")
            guard PusherChannelType(name: channel) != .normal, !isEncrypted else {
                throw ValidationError(
                    "--trigger needs private or presence channels, and not \(channel).")
            }
        }
    }

    func run() async throws {
        shared.prepare()
        do {
            let pusher = Pusher(key: server.key, options: try options())
            if let error = pusher.connection.configurationError { throw error }
            pusher.connection.userDataFetcher = authorization.userDataFetcher
            let completion = Completion()
            let view = PusherView(
                shared.console, completion, channels: channels, events: event, count: count,
                trigger: try trigger.map { ($0, try PusherCommand.json(data ?? "{}")) })
            let interruption = Interruption {
                pusher.disconnect()
                // Nothing else reports the end of what has not begun.
                if pusher.connection.connectionState == .disconnected { completion.end() }
            }
            view.subscribe(pusher)
            // A channel's name that cannot be used is reported on the loop.
            await Loop.shared.settle()
            view.connect(pusher)
            try await completion.wait()
            await Loop.shared.settle()
            try interruption.check()
        } catch {
            throw shared.console.fail(error)
        }
    }

    private static func json(_ argument: String) throws -> JSONValue {
        let text =
            argument.hasPrefix("@")
            ? String(decoding: try Files.read(String(argument.dropFirst())), as: UTF8.self)
            : argument
        return (try? JSONValue(parsing: text)) ?? .string(text)
    }

    private func options() throws -> PusherClientOptions {
        var options = PusherClientOptions(
            authMethod: try authorization.method, autoReconnect: reconnect, host: server.pusherHost,
            port: server.port, path: server.path, useTLS: !server.noTLS)
        options.executor = .loop
        options.authHeaders = try shared.headers()
        options.network = try shared.network.network()
        options.connectTimeout = try duration(shared.network.timeout, "--timeout")
        return options
    }
}

struct PusherServerOptions: ParsableArguments {
    @Option(help: "The app's key, which is not secret.")
    var key: String

    @Option(help: ArgumentHelp("A cluster of Pusher, such as eu.", valueName: "name"))
    var cluster: String?

    @Option(help: ArgumentHelp("Another server, without scheme and path.", valueName: "name"))
    var host: String?

    @Option(help: "Its port; 443 by default, or 80 with --no-tls.")
    var port: Int?

    @Option(help: ArgumentHelp("Its path before /app, such as /ws.", valueName: "path"))
    var path: String?

    @Flag(name: .customLong("no-tls"), help: "Connect without TLS.")
    var noTLS = false

    var pusherHost: PusherHost {
        host.map { .host($0) } ?? cluster.map { .cluster($0) } ?? .defaultHost
    }

    func validate() throws {
        try SharedOptions.refuse(empty: key, "--key")
        if host != nil, cluster != nil {
            throw ValidationError("--host and --cluster both name the server; use one of them.")
        }
    }
}

struct PusherAuthorizationOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Where private and presence channels are authorized.", valueName: "url"))
    var authEndpoint: String?

    @Option(
        help: ArgumentHelp(
            "The app's secret is the first line of this file. For development only.",
            valueName: "file"), completion: .file())
    var secretFile: String?

    @Option(
        help: ArgumentHelp(
            "With --secret-file: the user id for presence channels; else the socket id.",
            valueName: "id"))
    var userID: String?

    var method: AuthMethod {
        get throws {
            if let authEndpoint { return .endpoint(authEndpoint: authEndpoint) }
            guard let secretFile else { return .noMethod }
            return .inline(secret: try SharedOptions.firstLine(of: secretFile, "secret"))
        }
    }

    var userDataFetcher: (@MainActor @Sendable () -> PusherPresenceChannelMember)? {
        guard let userID else { return nil }
        return { PusherPresenceChannelMember(userId: userID) }
    }

    func validate() throws {
        if authEndpoint != nil, secretFile != nil {
            throw ValidationError("--auth-endpoint and --secret-file exclude each other.")
        }
        if userID != nil, secretFile == nil {
            throw ValidationError("--user-id needs --secret-file.")
        }
    }
}
