import ArgumentParser
import Realtime

/// An HTTP method, which has its own command.
protocol RequestMethod: SendableMetatype {
    static var name: String { get }
    static var abstract: String { get }
    static var hasBody: Bool { get }
    /// Without "realtime " at the beginning.
    static var examples: [String] { get }
}

enum Get: RequestMethod {
    static let name = "get"
    static let abstract = "Gets a URL."
    static let hasBody = false
    static let examples = [
        "get https://example.org/users/1", "get https://example.org/large.iso --output large.iso",
    ]
}

enum Post: RequestMethod {
    static let name = "post"
    static let abstract = "Sends data to a URL."
    static let hasBody = true
    static let examples = [
        "post https://example.org/messages --data hello --idempotency-key",
        "post https://example.org/users --type application/json --data-file user.json",
    ]
}

enum Put: RequestMethod {
    static let name = "put"
    static let abstract = "Puts data at a URL."
    static let hasBody = true
    static let examples = ["put https://example.org/files/1 --data-file photo.jpeg"]
}

enum Delete: RequestMethod {
    static let name = "delete"
    static let abstract = "Deletes the resource at a URL."
    static let hasBody = false
    static let examples = ["delete https://example.org/users/1"]
}

struct RequestCommand<Method: RequestMethod>: AsyncParsableCommand {
    static var configuration: CommandConfiguration {
        CommandConfiguration(
            commandName: Method.name,
            abstract: Method.abstract,
            discussion: """
                Writes the body of the response to standard output, or to --output, whatever its \
                status; a status other than 2xx leads to exit code 4. Failed attempts are repeated \
                if that is safe.

                EXAMPLES
                \(Method.examples.map { "  realtime \($0)" }.joined(separator: "\n"))
                """)
    }

    @Argument(help: "http://… or https://…")
    var url: String

    @Option(
        name: [.short, .long],
        help: ArgumentHelp("The body.", visibility: Method.hasBody ? .default : .hidden))
    var data: String?

    @Option(
        help: ArgumentHelp(
            "A file with the body, which is read while it is sent; - is standard input. A pipe "
                + "cannot be read again, so the request is not repeated once some of it was sent.",
            valueName: "file",
            visibility: Method.hasBody ? .default : .hidden), completion: .file())
    var dataFile: String?

    @Option(
        help: ArgumentHelp(
            "The body's Content-Type; text/plain by default, and application/octet-stream for a "
                + "file.",
            valueName: "type", visibility: Method.hasBody ? .default : .hidden))
    var type: String?

    @Option(
        name: [.short, .long],
        help: ArgumentHelp("Write the response's body to this file.", valueName: "file"),
        completion: .file())
    var output: String?

    @Flag(
        name: [.short, .long], help: "Write the response's status and headers to standard error.")
    var include = false

    @Option(help: "How many attempts are made at most.")
    var attempts = 3

    @Option(help: ArgumentHelp("Time limit for all attempts together.", valueName: "seconds"))
    var maxTime: Double?

    @Option(
        help: ArgumentHelp(
            "How long an attempt may go without a byte; 0 for no limit.",
            valueName: "seconds"))
    var idleTimeout: Double = 60

    @Flag(help: "Add a random Idempotency-Key, so that any attempt may be repeated.")
    var idempotencyKey = false

    @OptionGroup var shared: SharedOptions

    func validate() throws {
        if idleTimeout != 0 { _ = try duration(idleTimeout, "--idle-timeout") }
        if let maxTime { _ = try duration(maxTime, "--max-time") }
        if data != nil && dataFile != nil {
            throw ValidationError("--data and --data-file both set the body; use one of them.")
        }
        if !Method.hasBody, data != nil || dataFile != nil || type != nil {
            throw ValidationError("\(Method.name) sends no body.")
        }
        guard (1...100).contains(attempts) else {
            throw ValidationError("--attempts is \(attempts); 1 to 100 is expected.")
        }
    }

    func run() async throws {
        shared.prepare()
        let handlesSignals = Gate()
        let work = Task {
            await handlesSignals.wait()
            try await transfer()
        }
        // Handle signals before there is output, to which a script may react with a signal.
        let interruption = Interruption { work.cancel() }
        handlesSignals.setOpen(true)
        do {
            try await work.value
            try interruption.check()
        } catch {
            throw shared.console.fail(error)
        }
    }

    private func transfer() async throws {
        let console = shared.console
        let rest = try REST(options: options())
        let sink = try AnswerSink(output, console)
        let file = try dataFile.map { try FileBody($0) }
        // When a file is sent, a terminal gets the response at the end, so progress can be shown.
        let progress = Progress.onTerminal(isOutputShown: sink.isShown && file == nil, console)
        let stream: REST.Stream
        do {
            defer { progress?.end() }
            stream = try await rest.stream(request(file, progress))
            for try await piece in stream { try sink.take(piece) }
        } catch {
            throw file?.failure ?? error
        }
        let answer = stream.response
        if include && !console.isJSON {
            for header in answer.headers { console.note("\(header.name): \(header.value)") }
        }
        try sink.end(answer)
        let isGood = (200...299).contains(answer.status)
        // A query may contain a token.
        let place = answer.url.prefix { $0 != "?" }
        if let proxy = answer.proxy {
            console.note(
                "the proxy \(proxy) answered the request for \(place) with \(answer.status)"
                    + " \(answer.reason). \(RealtimeError.proxyAdvice)")
            throw ExitStatus.unreachable
        }
        if include || !isGood {
            console.note("\(place) answered \(answer.status) \(answer.reason)")
        }
        if !isGood { throw ExitStatus.refused }
    }

    private func options() throws -> REST.Options {
        var options = REST.Options()
        options.network = shared.network.network
        options.connectTimeout = try duration(shared.network.timeout, "--timeout")
        // The response is streamed, so this limits only the time without a byte.
        options.attemptTimeout =
            idleTimeout == 0 ? nil : try duration(idleTimeout, "--idle-timeout")
        options.deadline = nil
        options.attempts = attempts
        options.idempotencyKeys = idempotencyKey
        // The user is waiting: without a network an error is better than silence.
        options.reachability = try Reachability(.always)
        return options
    }

    private func request(_ file: FileBody?, _ progress: Progress?) throws -> REST.Request {
        var headers = try shared.headers()
        let hasType = headers.contains { $0.name.lowercased() == "content-type" }
        var body = REST.Request.Body.none
        if let data {
            body = .bytes(
                Array(data.utf8), type: hasType ? nil : type ?? "text/plain; charset=utf-8")
        } else if let file {
            body = file.body
            if !hasType {
                headers.append(("Content-Type", type ?? "application/octet-stream"))
            }
        }
        var request = REST.Request(
            Method.name.uppercased(), url, body: body, headers: headers)
        request.deadline = try maxTime.map { try duration($0, "--max-time") }
        request.idempotencyKeys = idempotencyKey
        if let progress {
            request.onProgress = { sent, toSend, received, toReceive in
                if received > 0 {
                    progress.report("received", received, of: toReceive)
                } else {
                    progress.report("sent", sent, of: toSend)
                }
            }
        }
        return request
    }
}
