import ArgumentParser
import Realtime

/// An HTTP method, which has its own command.
protocol RequestMethod: SendableMetatype {
    static var name: String { get }
    static var abstract: String { get }
    static var hasBody: Bool { get }
    /// Whether a request may be repeated in any case (RFC 9110, 9.2.2).
    static var isIdempotent: Bool { get }
    /// Whether a body that broke off can be continued.
    static var continues: Bool { get }
    /// What the description adds for this method.
    static var note: String { get }
    /// Without "realtime " at the beginning.
    static var examples: [String] { get }
}

extension RequestMethod {
    static var note: String {
        " A request whose response breaks off is not repeated: the server has answered it."
    }
    static var continues: Bool { false }
    static var isIdempotent: Bool { true }
}

enum Get: RequestMethod {
    static let continues = true
    static let note = """
         If the body breaks off, its rest is requested, or all of it if the server cannot send \
        that; the file of --output gets its name when it is whole, and has .part after it until \
        then.
        """
    static let name = "get"
    static let abstract = "Gets a URL."
    static let hasBody = false
    static let examples = [
        "get https://example.org/users/1", "get https://example.org/large.iso --output large.iso",
        "get https://example.org/large.iso --output large.iso -C -",
    ]
}

enum Post: RequestMethod {
    static let isIdempotent = false
    static let name = "post"
    static let abstract = "Sends data to a URL."
    static let hasBody = true
    static let examples = [
        "post https://example.org/messages --data hello --idempotency-key",
        "post https://example.org/users --type application/json -d @user.json",
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
                if that is safe.\(Method.note)

                EXAMPLES
                \(Method.examples.map { "  realtime \($0)" }.joined(separator: "\n"))
                """)
    }

    @Argument(help: "http://… or https://…")
    var url: String

    @Option(
        name: [.short, .long],
        help: ArgumentHelp(
            "The body; @ and a name for a file, @- for standard input, both unchanged.",
            visibility: Method.hasBody ? .default : .hidden))
    var data: String?

    @Option(
        help: ArgumentHelp(
            "The body, even if it begins with @.", valueName: "data",
            visibility: Method.hasBody ? .default : .hidden))
    var dataRaw: String?

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

    @Option(
        name: [.customShort("C"), .long],
        help: ArgumentHelp(
            "With -, continue the file that an earlier run has left as --output with .part. Its "
                + "version is not kept: that the server still has the same is up to you.",
            valueName: "-", visibility: Method.continues ? .default : .hidden))
    var continueAt: String?

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

    @Flag(
        help: ArgumentHelp(
            "Add a random Idempotency-Key, so that any attempt may be repeated.",
            visibility: Method.isIdempotent ? .hidden : .default))
    var idempotencyKey = false

    @OptionGroup var shared: SharedOptions

    func validate() throws {
        _ = try duration(orZero: idleTimeout, "--idle-timeout")
        try SharedOptions.refuse(empty: output, "--output")
        if let maxTime { _ = try duration(maxTime, "--max-time") }
        let bodies = [("--data", data), ("--data-raw", dataRaw), ("--data-file", dataFile)]
            .filter { $0.1 != nil }.map(\.0)
        if bodies.count > 1 {
            let names = bodies.joined(separator: " and ")
            throw ValidationError("\(names) both set the body; use one of them.")
        }
        if !Method.hasBody, !bodies.isEmpty || type != nil {
            throw ValidationError("\(Method.name) sends no body.")
        }
        if bodies.isEmpty, type != nil {
            throw ValidationError("--type needs --data, --data-raw or --data-file.")
        }
        if type != nil, shared.sets("Content-Type") {
            throw ValidationError("--type and -H Content-Type both set it; use one of them.")
        }
        if idempotencyKey {
            guard !Method.isIdempotent else {
                throw ValidationError("--idempotency-key is for post; \(Method.name) needs none.")
            }
            guard !shared.sets("Idempotency-Key") else {
                throw ValidationError(
                    "--idempotency-key and -H Idempotency-Key both set it; use one of them.")
            }
        }
        if data == "@" {
            throw ValidationError("--data @ names no file; --data-raw @ sends this character.")
        }
        if let continueAt {
            guard Method.continues else {
                throw ValidationError("--continue-at is for get.")
            }
            guard continueAt == "-" else {
                throw ValidationError("--continue-at is \(continueAt); only - is known.")
            }
            guard let output, output != "-" else {
                throw ValidationError("--continue-at needs the file of --output.")
            }
            guard !asksForPart else {
                throw ValidationError("--continue-at sets the header Range itself.")
            }
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
        let sink = try AnswerSink(output, continues: continueAt != nil, console)
        let file = try path.map { try FileBody($0) }
        // When a file is sent, a terminal gets the response at the end, so progress can be shown.
        let progress = Progress.onTerminal(isOutputShown: sink.isShown && file == nil, console)
        let (answer, isWhole): (REST.Response, Bool)
        do {
            defer { progress?.end() }
            let download = Download(
                rest: rest, request: try request(file), sink: sink, console: console,
                progress: progress, attempts: attempts,
                limit: try maxTime.map { try duration($0, "--max-time") })
            (answer, isWhole) = try await download.run()
        } catch {
            sink.reportPart(continues: Method.continues && !asksForPart)
            throw file?.failure ?? error
        }
        if include && !console.isJSON {
            for header in answer.headers { console.note("\(header.name): \(header.value)") }
        }
        try sink.end(answer)
        let isGood = isWhole || (200...299).contains(answer.status)
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
        options.executor = .loop
        options.network = try shared.network.network()
        options.connectTimeout = try duration(shared.network.timeout, "--timeout")
        // The response is streamed, so this limits only the time without a byte.
        options.attemptTimeout = try duration(orZero: idleTimeout, "--idle-timeout")
        options.deadline = nil
        options.attempts = attempts
        options.idempotencyKeys = idempotencyKey
        // The user is waiting: without a network an error is better than silence.
        options.reachability = try Reachability(.always)
        return options
    }

    /// Whether the user asks for a part of the body.
    private var asksForPart: Bool { shared.sets("Range") }

    /// The file with the body.
    private var path: String? {
        guard let data, data.hasPrefix("@") else { return dataFile }
        return String(data.dropFirst())
    }

    private func request(_ file: FileBody?) throws -> REST.Request {
        var headers = try shared.headers()
        let hasType = headers.contains { $0.name.lowercased() == "content-type" }
        var body = REST.Request.Body.none
        if let file {
            body = file.body
            if !hasType {
                headers.append(("Content-Type", type ?? "application/octet-stream"))
            }
        } else if let data = dataRaw ?? data {
            body = .bytes(
                Array(data.utf8), type: hasType ? nil : type ?? "text/plain; charset=utf-8")
        }
        var request = REST.Request(
            Method.name.uppercased(), url, body: body, headers: headers)
        request.idempotencyKeys = idempotencyKey
        return request
    }
}
