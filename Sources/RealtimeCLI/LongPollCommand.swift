import ArgumentParser
import Realtime

struct LongPollCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "poll",
        abstract: "Prints messages by requests that the server answers when there is news.",
        discussion: """
            The data of each message is written as it is, a line each; --json tells id and type \
            too. Polls follow one another until Ctrl-C or --count.

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
            How polls say what has come: If-Modified-Since and If-None-Match, Last-Event-ID, a \
            query parameter, or not at all.
            """)
    var cursor = CursorName.validators

    @Option(help: ArgumentHelp("The query parameter of --cursor query.", valueName: "name"))
    var idParameter = "last_event_id"

    @Option(help: ArgumentHelp("Begin behind the message with this id.", valueName: "id"))
    var lastEventID: String?

    @Option(
        help: ArgumentHelp(
            "Between polls that are answered at once with nothing new.", valueName: "seconds"))
    var interval: Double = 15

    @Option(help: ArgumentHelp("How long a poll may be held.", valueName: "seconds"))
    var hold: Double = 60

    @Option(help: "End when so many messages have come.")
    var count: Int?

    @OptionGroup var shared: SharedOptions

    func validate() throws {
        _ = try duration(interval, "--interval")
        _ = try duration(hold, "--hold")
        if let count, count < 1 { throw ValidationError("--count is \(count); 1 is the least.") }
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
            try shared.console.tellOffline()
            try poll.start()
            try await completion.wait()
            await Loop.shared.settle()
            try interruption.check()
        } catch {
            throw shared.console.fail(error)
        }
    }

    /// All is told on the loop's thread, so that it comes in the order it happened.
    private func addHandlers(to poll: LongPoll, _ completion: Completion) {
        let console = shared.console
        poll.onOpen { _ in console.note("the server answers", JSONLine("open")) }
        poll.onError { failure in
            if failure.isFatal { return completion.end(failure.error) }
            console.tellLoss(failure.error, failure.retryIn, failure.attempt)
        }
        let left = Countdown(count)
        poll.onMessage { [unowned poll] message in
            guard !left.isOver else { return }
            console.tell(
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
        options.headers = try shared.headers()
        options.network = shared.network.network
        options.connectTimeout = try duration(shared.network.timeout, "--timeout")
        options.cursor =
            switch cursor {
            case .validators: .validators
            case .header: .headerID
            case .query: .queryID(parameter: idParameter)
            case .none: .none
            }
        options.lastEventID = lastEventID ?? ""
        options.interval = try duration(interval, "--interval")
        options.pollTimeout = try duration(hold, "--hold")
        return options
    }
}
