import ArgumentParser
@_spi(CommandLine) import Realtime

struct DDPCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ddp",
        abstract: "Subscribes to publications of a Meteor server, and calls its methods.",
        discussion: """
            sub NAME subscribes, and writes each change of the documents as a line: what happened, \
            the collection, the id and the fields, until Ctrl-C or --count; --json writes an \
            object. With --collection it writes only what changes in the result of a query. \
            --watch shows that result as a table, which follows each change; if standard output \
            is not a terminal, or with --json, it writes lines. --stream is for servers that use \
            documents as events, as Rocket.Chat's do: each message is written as it came.

            call METHOD writes the method's result, as EJSON. If the server refuses, the exit code \
            is 4; `realtime --help` lists all exit codes. A call whose connection is lost before \
            the result is repeated on the next one, unless --no-retry is given.

            Arguments are EJSON: 5, true, '{"a":1}', '{"$date":0}'. Any other argument is a text, \
            unless it begins with {, [ or ": then it is an error, because a quote may be missing. \
            The number 5 is 5, the text is '"5"'. Arguments that begin with - follow after --.

            The password for --login comes from --password-file, or else from the variable \
            REALTIME_PASSWORD; otherwise it is asked for, or read from the first line of standard \
            input if that is not a terminal. With --login ada:PASSWORD, others on this machine can \
            see it. --token-file keeps the login for later commands, which then need no --login.

            The command first tries WebSocket, and then SockJS, which only needs HTTP requests. \
            If neither works, or the server cannot be reached, it ends. A connection that is lost \
            later is established again, unless --no-reconnect is given; that also leaves SockJS \
            out.

            EXAMPLES
              realtime ddp https://example.org sub tasks abc123 --login ada
              realtime ddp https://example.org sub tasks --watch --sort done,-due
              realtime ddp https://example.org call addTask '{"text":"Buy milk"}' --json
            """)

    enum Action: String, ExpressibleByArgument, CaseIterable { case sub, call }

    @Argument(help: "https://…, http://…, wss://… or ws://…")
    var url: String

    @Argument(help: ArgumentHelp("Subscribe, or call a method.", valueName: "sub|call"))
    var action: Action

    @Argument(help: "The publication or method.")
    var name: String

    @Argument(help: ArgumentHelp("Its arguments, as EJSON or text.", valueName: "argument"))
    var arguments: [String] = []

    @OptionGroup(title: "Login")
    var account: DDPLoginOptions

    @OptionGroup(title: "Documents of sub")
    var query: DDPQueryOptions

    @Flag(help: "With sub: show the documents as a table. --collection is NAME unless given.")
    var watch = false

    @Flag(help: "With sub: end when the initial documents are there.")
    var once = false

    @Option(help: "With sub: end after this many changes.")
    var count: Int?

    @Flag(inversion: .prefixedNo, help: "With call: repeat it if the connection is lost.")
    var retry = true

    @Option(
        help: ArgumentHelp(
            "With call: the time limit for the result. With sub: for the initial documents.",
            valueName: "seconds"))
    var maxTime: Double?

    @Flag(inversion: .prefixedNo, help: "Reconnect when the connection is lost.")
    var reconnect = true

    @OptionGroup var shared: SharedOptions

    func validate() throws {
        try SharedOptions.refuse(empty: name, "The name")
        try SharedOptions.check(count: count)
        if let maxTime { _ = try duration(maxTime, "--max-time") }
        switch action {
        case .sub:
            if !retry { throw ValidationError("--no-retry is for call.") }
        case .call:
            if watch || once || count != nil || query.isUsed {
                throw ValidationError("Options for documents are for sub.")
            }
        }
        if watch, !query.stream.isEmpty {
            throw ValidationError("--stream writes lines, and --watch a table; use one of them.")
        }
        if query.isNarrowed, query.collection == nil, !watch {
            throw ValidationError("--selector, --sort, --fields and --limit need --collection.")
        }
        _ = try params
        if showsTable, shared.verbose, Console.isErrorTerminal {
            throw ValidationError("--verbose would write into the table; add 2>FILE.")
        }
    }

    func run() async throws {
        shared.prepare()
        do {
            let login = try account.login()
            let client = try DDPClient(url, options: options())
            let completion = Completion()
            let view = DDPView(
                shared.console, completion, try shown, streams: query.stream, url: url,
                count: count)
            let interruption = Interruption { view.leave(client) }
            let work = Task {
                do {
                    try await perform(client, view, login)
                } catch {
                    completion.end(error)
                }
            }
            let result = await Task { try await completion.wait() }.result
            work.cancel()
            view.finish(client)
            await Loop.shared.settle()
            if let fault = client.tokenFault { shared.console.reportLoss(fault, nil, 0) }
            try interruption.check()
            try result.get()
            if client.tokenFault != nil { throw ExitStatus.other }
        } catch {
            throw shared.console.fail(error)
        }
    }

    private func perform(_ client: DDPClient, _ view: DDPView, _ login: DDPLogin?) async throws {
        try view.connect(client, asksAgain: login != nil)
        if let login { try await view.during(.login) { try await login.perform(client) } }
        let params = try params
        switch action {
        case .call:
            var options = DDPCallOptions()
            options.noRetry = !retry
            if let maxTime { options.timeout = try duration(maxTime, "--max-time") }
            let result = try await view.during(.call(name)) { [options] in
                try await client.call(name, params, options: options)
            }
            view.show(result: result)
        case .sub:
            let limit = try maxTime.map { try duration($0, "--max-time") }
            try await view.subscribe(client, name, params, limit, endsWhenReady: once)
        }
    }

    private var params: [EJSON] {
        get throws {
            try arguments.enumerated().map { try EJSON(argument: $1, "Argument \($0 + 1)") }
        }
    }

    private var shown: DDPView.Shown {
        get throws {
            guard let collection = query.collection ?? (watch ? name : nil) else {
                return .everything
            }
            let wanted = try query.query(of: collection)
            return showsTable ? .table(wanted) : .query(wanted)
        }
    }

    private var showsTable: Bool { watch && Screen.isPossible && !shared.json }

    private func options() throws -> DDPClient.Options {
        var options = DDPClient.Options()
        options.executor = .loop
        options.headers = try shared.headers()
        options.network = try shared.network.network()
        options.connectTimeout = try duration(shared.network.timeout, "--timeout")
        options.autoReconnect = reconnect
        options.tokenFile = account.tokenFile
        return options
    }
}
