import ArgumentParser
import Realtime

/// The command-line tool. Each command is a file of its own; what they share is in `*Options.swift`
/// and in `Console.swift`.
@main struct Tool: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "realtime",
        abstract: "Talks to realtime servers: WebSocket, events, long polling, requests.",
        discussion: """
            What is received goes to standard output, a line each; all else goes to standard \
            error. With --json all of it goes to standard output, one JSON object a line, whose \
            "event" tells what happened.

            Ctrl-C, or SIGTERM, closes the connection in order, which takes 12 seconds at most; a \
            second one ends at once.

            EXIT CODES
            \(ExitStatus.table)

            ENVIRONMENT
              http_proxy, HTTPS_PROXY, ALL_PROXY, NO_PROXY are followed; --proxy goes before them.
              CURL_CA_BUNDLE, or else SSL_CERT_FILE and SSL_CERT_DIR, name authorities to trust \
            instead of the system's; --ca-file goes before them.
            """,
        version: "realtime \(Library.version)",
        subcommands: [
            WebSocketCommand.self, EventSourceCommand.self, LongPollCommand.self,
            ListenCommand.self,
            RequestCommand<Get>.self, RequestCommand<Post>.self, RequestCommand<Put>.self,
            RequestCommand<Delete>.self,
        ])
}
