import ArgumentParser
import Realtime

struct LongPollCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "poll",
        abstract: "Prints messages by long polls, which the server answers when it has a message.",
        discussion: """
            Writes the data of each message as a line, with \\n in place of a line feed, until \
            Ctrl-C or --count; --json adds id and type.

            EXAMPLES
              realtime poll https://example.org/messages
              realtime poll https://example.org/messages --cursor header --count 10 --json
            """)

    enum CursorName: String, ExpressibleByArgument, CaseIterable {
        case validators, header, query, none
    }

    @Argument(help: "http://… or https://…")
    var url: String

    @Option(
        help: """
            How a poll names the last message: by If-Modified-Since and If-None-Match, by \
            Last-Event-ID, by a query parameter, or not at all.
            """)
    var cursor = CursorName.validators

    @Option(
        help: ArgumentHelp(
            "The query parameter of --cursor query; last_event_id by default.", valueName: "name"))
    var idParameter: String?

    @Option(help: ArgumentHelp("Start after the message with this id.", valueName: "id"))
    var lastEventID: String?

    @Option(
        help: ArgumentHelp(
            "Time between polls that the server does not hold.", valueName: "seconds"))
    var interval: Double = 15

    @Option(help: ArgumentHelp("How long the server may hold a poll.", valueName: "seconds"))
    var hold: Double = 60

    @Option(help: "End after this many messages.")
    var count: Int?

    @OptionGroup var shared: SharedOptions

    func validate() throws {
        _ = try duration(interval, "--interval")
        _ = try duration(hold, "--hold")
        try SharedOptions.check(count: count)
        if idParameter != nil, cursor != .query {
            throw ValidationError("--id-parameter needs --cursor query.")
        }
        if lastEventID != nil, cursor == .none {
            throw ValidationError("--cursor none does not send --last-event-id.")
        }
    }

    func run() async throws {
        shared.prepare()
        do {
            let poll = try LongPoll(url, options: options(), start: false)
            let completion = Completion()
            let interruption = Interruption {
                poll.close()
                completion.end()
            }
            addHandlers(to: poll, completion)
            try poll.start()
            try await completion.wait()
            await Loop.shared.settle()
            try interruption.check()
        } catch {
            throw shared.console.fail(error)
        }
    }

    /// Everything is written on the loop's thread, so the output has the order of the events.
    private func addHandlers(to poll: LongPoll, _ completion: Completion) {
        let console = shared.console
        poll.onOpen { _ in console.note("the server answers", JSONLine("open")) }
        poll.onError { failure in
            if failure.isFatal { return completion.end(failure.error) }
            console.reportLoss(failure.error, failure.retryIn, failure.attempt)
        }
        let left = Countdown(count)
        poll.onMessage { [weak poll] message in
            guard let poll else { return }
            guard !left.isOver else { return }
            console.emit(
                message.data,
                JSONLine("message").with("type", message.contentType).with("id", message.id))
            if left.countsDown() {
                poll.close()
                completion.end()
            }
        }
    }

    private func options() throws -> LongPoll.Options {
        var options = LongPoll.Options()
        options.executor = .loop
        options.headers = try shared.headers()
        options.network = try shared.network.network()
        options.connectTimeout = try duration(shared.network.timeout, "--timeout")
        options.cursor =
            switch cursor {
            case .validators: .validators
            case .header: .headerID
            case .query: .queryID(parameter: idParameter ?? "last_event_id")
            case .none: .none
            }
        options.lastEventID = lastEventID ?? ""
        options.interval = try duration(interval, "--interval")
        options.pollTimeout = try duration(hold, "--hold")
        return options
    }
}
