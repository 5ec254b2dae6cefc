import ArgumentParser
import Realtime

/// What `--collection` and the options for it select.
struct DDPQuery: Sendable {
    var collection: String
    var selector: EJSON = [:]
    var options = EJSONObject()
    /// The columns that were asked for, in their order; nil for all.
    var columns: [String]?
}

struct DDPQueryOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Only documents of this collection.", valueName: "name"))
    var collection: String?

    @Option(
        help: ArgumentHelp("An object such as '{\"done\":false}', or an id.", valueName: "ejson"))
    var selector: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Fields to sort by; - before one reverses it.", valueName: "a,-b"))
    var sort: String?

    @Option(help: ArgumentHelp("Only these fields.", valueName: "a,b"))
    var fields: String?

    @Option(help: "Only the first documents.")
    var limit: Int?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "The documents of this collection are events: write each message as it came; may be "
                + "repeated.", valueName: "name"))
    var stream: [String] = []

    var isNarrowed: Bool { selector != nil || sort != nil || fields != nil || limit != nil }
    var isUsed: Bool { isNarrowed || collection != nil || !stream.isEmpty }

    func validate() throws {
        try SharedOptions.refuse(empty: collection, "--collection")
        try SharedOptions.refuse(empty: selector, "--selector")
        for name in stream { try SharedOptions.refuse(empty: name, "--stream") }
        // As bytes, because Swift considers canonically equivalent strings equal.
        if let collection, stream.contains(where: { $0.utf8.elementsEqual(collection.utf8) }) {
            throw ValidationError(
                "--stream and --collection both name \(collection); a stream has no documents.")
        }
        if let selector { _ = try EJSON(argument: selector, "--selector") }
        if let limit, limit < 1 {
            throw ValidationError("--limit is \(limit); 1 or more is expected.")
        }
        for (list, option) in [(sort, "--sort"), (fields, "--fields")] {
            if let list, list.names.contains(where: { $0.isEmpty || $0 == "-" }) {
                throw ValidationError("\(option) is \"\(list)\"; names and commas are expected.")
            }
        }
    }

    func query(of collection: String) throws -> DDPQuery {
        var query = DDPQuery(collection: collection)
        if let selector { query.selector = try EJSON(argument: selector, "--selector") }
        if let sort {
            let order = sort.names.map { name in
                name.hasPrefix("-") ? (String(name.dropFirst()), EJSON.number(-1)) : (name, 1)
            }
            query.options["sort"] = .object(EJSONObject(order))
        }
        if let names = fields?.names {
            query.columns = names
            query.options["fields"] = .object(EJSONObject(names.map { ($0, 1) }))
        }
        if let limit { query.options["limit"] = .number(Double(limit)) }
        return query
    }
}

struct DDPLoginOptions: ParsableArguments {
    @Option(
        name: .customLong("login"),
        help: ArgumentHelp(
            "Log this user in: an email address if it has an @.", valueName: "user[:password]"))
    var credentials: String?

    @Option(
        help: ArgumentHelp(
            "With --login: the password is the first line of this file; - is standard input.",
            valueName: "file"), completion: .file())
    var passwordFile: String?

    @Option(help: "With --login: the code of the second factor.")
    var code: String?

    @Option(
        help: ArgumentHelp(
            "Log in with the token of a login; - reads it from standard input.",
            valueName: "token"))
    var token: String?

    @Option(
        help: ArgumentHelp(
            "Keep the login in this file, and use the one that is there.", valueName: "file"),
        completion: .file())
    var tokenFile: String?

    func validate() throws {
        try SharedOptions.refuse(empty: credentials, "--login")
        try SharedOptions.refuse(empty: passwordFile, "--password-file")
        try SharedOptions.refuse(empty: token, "--token")
        try SharedOptions.refuse(empty: tokenFile, "--token-file")
        if let (user, password) = credentials.flatMap(atColon), user.isEmpty || password.isEmpty {
            throw ValidationError("--login has no \(user.isEmpty ? "user" : "password").")
        }
        if credentials == nil, code != nil || passwordFile != nil {
            throw ValidationError("--code and --password-file need --login.")
        }
        if credentials.flatMap(atColon) != nil, passwordFile != nil {
            throw ValidationError("--login and --password-file both give a password; use one.")
        }
        if credentials != nil, token != nil {
            throw ValidationError("--login and --token both log in; use one of them.")
        }
    }

    /// How to log in; nil without `--login` and `--token`. May ask for the password.
    func login() throws -> DDPLogin? {
        if let token {
            return .token(token == "-" ? try SharedOptions.firstLine(of: "-", "token") : token)
        }
        guard let credentials else { return nil }
        if let (user, password) = atColon(credentials) {
            return .password(user: String(user), String(password), code: code)
        }
        let password =
            try passwordFile.map { try SharedOptions.firstLine(of: $0, "password") }
            ?? Password.read("Password for \(credentials): ")
        return .password(user: credentials, password, code: code)
    }
}

/// A login that the arguments ask for.
enum DDPLogin: Sendable {
    case password(user: String, String, code: String?)
    case token(String)

    func perform(_ client: DDPClient) async throws {
        switch self {
        case .password(let user, let password, let code):
            try await client.logIn(user: user, password: password, code: code)
        case .token(let token): try await client.logIn(token: token)
        }
    }
}

extension String {
    /// The parts between commas.
    fileprivate var names: [String] {
        utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
            .map { String(Substring($0)) }
    }
}

extension EJSON {
    /// An argument: EJSON, or else a text.
    /// - Throws: `ValidationError` for what seems to be EJSON but is not.
    init(argument text: String, _ what: String) throws {
        do {
            self = try EJSON(parsing: text)
        } catch {
            guard let first = text.utf8.first, "{[\"".utf8.contains(first) else {
                self = .string(text)
                return
            }
            throw ValidationError(
                """
                \(what) begins with \(Character(Unicode.Scalar(first))) and so must be EJSON: \
                \(error.message). A text that begins so is written in quotes: '"{"'.
                """)
        }
    }
}
