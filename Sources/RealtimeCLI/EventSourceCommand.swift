import ArgumentParser
@_spi(CommandLine) import Realtime

struct EventSourceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sse",
        abstract: "Prints server-sent events.",
        discussion: """
            Writes the data of each event as a line, with \\n in place of a line feed; --json adds \
            type and id. When the stream ends or fails, the command reconnects and continues after \
            the last id, until Ctrl-C or --count; --no-reconnect ends it instead. With --id-file \
            the exit code is 1 if the last id could not be kept for the next run.

            EXAMPLES
              realtime sse https://example.org/events
              realtime sse https://example.org/events --event tick --count 10
              realtime sse https://example.org/events --json | jq 'select(.data).data'
            """)

    @Argument(help: "http://… or https://…")
    var url: String

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("Print only events of this type; may be repeated.", valueName: "type"))
    var event: [String] = []

    @Option(help: ArgumentHelp("Start after the event with this id.", valueName: "id"))
    var lastEventID: String?

    @Option(
        help: ArgumentHelp("Keep the last id in this file between runs.", valueName: "file"),
        completion: .file())
    var idFile: String?

    @Flag(inversion: .prefixedNo, help: "Reconnect when the stream ends or fails.")
    var reconnect = true

    @Flag(
        help: """
            Also reconnect after the statuses 408, 425, 429, 500, 502 to 504, 520 to 524 and 530.
            """)
    var resilient = false

    @Option(help: "End after this many events.")
    var count: Int?

    @OptionGroup var shared: SharedOptions

    func validate() throws {
        if event.contains("") {
            throw ValidationError("--event is \"\"; events without a type have the type message.")
        }
        try SharedOptions.refuse(empty: idFile, "--id-file")
        if resilient, !reconnect {
            throw ValidationError("--resilient and --no-reconnect exclude each other.")
        }
        try SharedOptions.check(count: count)
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
            try source.start()
            let result = await Task { try await completion.wait() }.result
            // The last id may not be in the file yet.
            await Loop.shared.settle()
            let isKept = keepsLastID(of: source)
            try interruption.check()
            try result.get()
            if !isKept { throw ExitStatus.other }
        } catch {
            throw shared.console.fail(error)
        }
    }

    /// Says why if the next run cannot continue after the last event.
    private func keepsLastID(of source: EventSource) -> Bool {
        do throws(RealtimeError) {
            try source.writeLastID()
            return true
        } catch {
            shared.console.reportLoss(error, nil, 0)
            return false
        }
    }

    /// Everything is written on the loop's thread, so the output has the order of the events.
    private func addHandlers(to source: EventSource, _ completion: Completion) {
        let console = shared.console
        source.onOpen { [weak source] _ in
            guard let source else { return }
            console.note(
                "connected to \(source.origin)", JSONLine("open").with("origin", source.origin))
        }
        source.onError { failure in
            if failure.isFatal {
                return completion.end(failure.error.code == .closed ? nil : failure.error)
            }
            console.reportLoss(failure.error, failure.retryIn, failure.attempt)
        }
        let left = Countdown(count)
        // As bytes, because Swift considers canonically equivalent strings equal.
        let types = Set(event.map { Array($0.utf8) })
        source.onAny { [weak source] received in
            guard let source else { return }
            guard types.isEmpty || types.contains(Array(received.event.utf8)), !left.isOver
            else { return }
            console.emit(
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
        options.executor = .loop
        options.headers = try shared.headers()
        options.network = try shared.network.network()
        options.connectTimeout = try duration(shared.network.timeout, "--timeout")
        if let idFile {
            try Files.checkWritable(idFile, "--id-file")
            // Without ids, the next run would begin anew, or miss events.
            try EventSource.checkIDFile(idFile)
        }
        options.lastEventID = lastEventID
        options.idFile = idFile
        options.reconnect = reconnect
        if resilient { options.retryStatuses = EventSource.Options.resilient }
        return options
    }
}
