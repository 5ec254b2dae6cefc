import ArgumentParser
import Realtime

struct EventSourceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sse",
        abstract: "Prints the events of a stream of Server-Sent Events.",
        discussion: """
            The data of each event is written as it is, a line each; --json tells type and id too. \
            The stream is come back to when it ends, from the last id on, until Ctrl-C or --count, \
            unless --no-reconnect is given.

            EXAMPLES
              realtime sse https://example.org/events
              realtime sse https://example.org/events --event tick --count 10
              realtime sse https://example.org/events --json | jq 'select(.data).data'
            """)

    @Argument(help: "http://… or https://…")
    var url: String

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("Print events of this type alone; may be repeated.", valueName: "type"))
    var event: [String] = []

    @Option(help: ArgumentHelp("Begin behind the event with this id.", valueName: "id"))
    var lastEventID: String?

    @Option(help: ArgumentHelp("Keep the last id there between runs.", valueName: "file"))
    var idFile: String?

    @Flag(inversion: .prefixedNo, help: "Come back when the stream ends or fails.")
    var reconnect = true

    @Flag(help: "Come back after the statuses 408, 425, 429, 500, 502, 503 and 504, too.")
    var resilient = false

    @Option(help: "End when so many events have come.")
    var count: Int?

    @OptionGroup var shared: SharedOptions

    func validate() throws {
        if event.contains("") {
            throw ValidationError("--event is \"\"; events without a type have the type message.")
        }
        if let count, count < 1 { throw ValidationError("--count is \(count); 1 is the least.") }
    }

    func run() async throws {
        shared.prepare()
        do {
            let source = try EventSource(url, options: options(), start: false)
            let completion = Completion()
            let interruption = Interruption {
                source.close()
                completion.end()
            }
            addHandlers(to: source, completion)
            try shared.console.tellOffline()
            try source.start()
            try await completion.wait()
            // The last id is on its way to the file.
            await Loop.shared.settle()
            try interruption.check()
        } catch {
            throw shared.console.fail(error)
        }
    }

    /// All is told on the loop's thread, so that it comes in the order it happened.
    private func addHandlers(to source: EventSource, _ completion: Completion) {
        let console = shared.console
        source.onOpen { [unowned source] _ in
            console.note(
                "connected to \(source.origin)", JSONLine("open").with("origin", source.origin))
        }
        source.onError { failure in
            if failure.isFatal {
                return completion.end(failure.error.code == .closed ? nil : failure.error)
            }
            console.tellLoss(failure.error, failure.retryIn, failure.attempt)
        }
        let left = Countdown(count)
        // By their bytes: two that look alike are two.
        let types = Set(event.map { Array($0.utf8) })
        source.onAny { [unowned source] received in
            guard types.isEmpty || types.contains(Array(received.event.utf8)), !left.isOver
            else { return }
            console.tell(
                received.data,
                JSONLine("message").with("type", received.event).with("id", received.id)
                    .with("data", received.data))
            if left.countsDown() {
                source.close()
                completion.end()
            }
        }
    }

    private func options() throws -> EventSource.Options {
        var options = EventSource.Options()
        options.headers = try shared.headers()
        options.network = shared.network.network
        options.connectTimeout = try duration(shared.network.timeout, "--timeout")
        options.lastEventID = lastEventID
        options.idFile = idFile
        options.reconnect = reconnect
        if resilient { options.retryStatuses = EventSource.Options.resilient }
        return options
    }
}
