import ArgumentParser
import Realtime

/// The command-line tool. Each command has its own file; `*Options.swift` and `Console.swift` hold
/// the parts that they share.
@main struct Tool: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "realtime",
        abstract:
            "Talks to realtime servers: WebSocket, events, long polls, Pusher, Meteor, requests.",
        discussion: """
            Received data goes to standard output, one line for each message, with \\n in place of \
            a line feed; everything else goes to standard error. With --json everything goes to \
            standard output, one JSON object a line, whose "event" says what happened.

            Ctrl-C, SIGTERM or SIGHUP closes the connection properly, which takes up to 12 \
            seconds, or 2 if nothing reads the output; a second one ends the command at once.

            EXAMPLES, against the server that `python -m librealtime.demo_server` starts
              realtime ws ws://127.0.0.1:8080/echo
              realtime sse http://127.0.0.1:8080/events
              realtime listen http://127.0.0.1:8080/channel/news
              realtime post http://127.0.0.1:8080/channel/news --data hello

            realtime --generate-completion-script bash, zsh or fish prints a script with which \
            the shell completes commands and options.

            EXIT CODES
            \(ExitStatus.table)

            ENVIRONMENT
              http_proxy, HTTPS_PROXY, ALL_PROXY, NO_PROXY: unless --proxy is given
              CURL_CA_BUNDLE, or else SSL_CERT_FILE and SSL_CERT_DIR: authorities to trust
              instead of the system's, unless --ca-file is given
            """,
        version: "realtime \(Library.version)",
        subcommands: [
            WebSocketCommand.self, EventSourceCommand.self, LongPollCommand.self,
            ListenCommand.self, PusherCommand.self, DDPCommand.self,
            RequestCommand<Get>.self, RequestCommand<Post>.self, RequestCommand<Put>.self,
            RequestCommand<Delete>.self,
        ])

    static func main() async {
        Console.reserveStandardStreams()
        do {
            var command = try parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            Output.flush()
        } catch {
            Output.flush()
            PEM.exitIfShown(by: fullMessage(for: error))
            exit(withError: error)
        }
    }
}
