import ArgumentParser
import Realtime

/// The options of every command: for output, headers and connections.
struct SharedOptions: ParsableArguments {
    @Flag(help: "Write everything to standard output, as JSON lines.")
    var json = false

    @Flag(name: .shortAndLong, help: "Write the library's log to standard error.")
    var verbose = false

    @Option(
        name: [.customShort("H"), .long], parsing: .singleValue,
        help: ArgumentHelp("A header of the request; may be repeated.", valueName: "name: value"),
        transform: parseHeader)
    var header: [(name: String, value: String)] = []

    @Option(
        help: ArgumentHelp("Credentials for basic authentication.", valueName: "name:password"))
    var user: String?

    @Option(help: ArgumentHelp("A token for bearer authentication.", valueName: "token"))
    var bearer: String?

    @Option(
        help: ArgumentHelp(
            "The token from a file's first line, which keeps it out of the list of processes.",
            valueName: "file"), completion: .file())
    var bearerFile: String?

    @OptionGroup(title: "Connection")
    var network: NetworkOptions

    var console: Console { Console(isJSON: json) }

    /// Rejects an empty value, which usually comes from a shell variable that is not set: the user
    /// would not expect a request without credentials.
    static func refuse(empty value: String?, _ option: String) throws {
        if value == "" { throw ValidationError("\(option) is \"\".") }
    }

    static func check(count: Int?) throws {
        if let count, count < 1 {
            throw ValidationError("--count is \(count); 1 or more is expected.")
        }
    }

    /// Whether -H sets a header.
    func sets(_ name: String) -> Bool {
        header.contains { $0.name.lowercased() == name.lowercased() }
    }

    /// The headers with the credentials.
    func headers() throws -> [(name: String, value: String)] {
        var headers = header
        if let token = try token() {
            headers.append(("Authorization", "Bearer \(token)"))
        }
        if let user {
            let (name, password) = atColon(user) ?? (user[...], "")
            let value = try EventSource.basicAuth(String(name), password: String(password))
            headers.append(("Authorization", value))
        }
        return headers
    }

    /// The bearer token.
    func token() throws -> String? {
        try bearer ?? bearerFile.map { try SharedOptions.firstLine(of: $0, "token") }
    }

    /// Returns the first line of a file, with a token or a secret.
    static func firstLine(of path: String, _ content: String) throws -> String {
        let line = try Files.read(path).prefix { $0 != 0x0A && $0 != 0x0D }
        guard !line.isEmpty else {
            let input = path == "-" ? "standard input" : "\"\(path)\""
            throw RealtimeError(.invalidArgument, "\(input) has no \(content) in its first line")
        }
        return String(decoding: line, as: UTF8.self)
    }

    /// Every command calls this first.
    func prepare() {
        Console.ignoreSignalsOfWrites()
        guard verbose else { return }
        Log.send(upTo: .debug) { level, line in
            Console.remark("\(level): \(line)")
        }
    }

    func validate() throws {
        try SharedOptions.refuse(empty: bearer, "--bearer")
        try SharedOptions.refuse(empty: user, "--user")
        if [user, bearer, bearerFile].count(where: { $0 != nil }) > 1 {
            throw ValidationError(
                "--user, --bearer and --bearer-file set the same header; use one of them.")
        }
    }
}

struct NetworkOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("Authorities to trust (PEM), not the system's.", valueName: "file"),
        completion: .file())
    var caFile: String?

    @Option(
        help: ArgumentHelp("Send this client certificate (PEM).", valueName: "file"),
        completion: .file())
    var certificate: String?

    @Option(
        help: ArgumentHelp("Its private key, if that is in another file.", valueName: "file"),
        completion: .file())
    var certificateKey: String?

    @Flag(help: "Accept any certificate; others on the network can then read and change data.")
    var insecure = false

    @Option(help: ArgumentHelp("http, https, socks4(a) or socks5(h); or none.", valueName: "url"))
    var proxy: String?

    @Option(
        help: ArgumentHelp("Connect to this Unix socket.", valueName: "path"), completion: .file())
    var unixSocket: String?

    @Option(
        help: ArgumentHelp(
            "Connect from this interface or local address.", valueName: "eth1|address"),
        completion: .shellCommand("ls /sys/class/net"))
    var interface: String?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("Use this address instead of a lookup.", valueName: "host:port:address"),
        transform: parseResolve)
    var resolve: [Network.Resolve] = []

    @Option(help: ArgumentHelp("Time limit for connecting.", valueName: "seconds"))
    var timeout: Double = 10

    @Flag(name: [.customShort("4"), .long], help: "Use IPv4 only.")
    var ipv4 = false

    @Flag(name: [.customShort("6"), .long], help: "Use IPv6 only.")
    var ipv6 = false

    /// - Throws: `RealtimeError` for a file that cannot be read or has no certificate or key. That
    ///   is found out here rather than by each attempt to connect.
    func network() throws -> Network {
        try NetworkOptions.check(caFile, "--ca-file", has: "CERTIFICATE")
        try NetworkOptions.check(certificate, "--certificate", has: "CERTIFICATE")
        let key = (certificateKey, "--certificate-key")
        let (keyFile, option) = certificateKey == nil ? (certificate, "--certificate") : key
        try NetworkOptions.check(keyFile, option, has: "PRIVATE KEY")
        var network = Network()
        network.caFile = caFile
        network.clientCertificate = certificate.map {
            Network.ClientCertificate(certificateFile: $0, keyFile: certificateKey)
        }
        network.insecureSkipVerification = insecure
        if let proxy { network.proxy = proxy == "none" ? .none : .url(proxy) }
        network.unixSocket = unixSocket
        network.interface = interface
        network.resolves = resolve
        if ipv4 || ipv6 { network.ipVersion = ipv4 ? .v4 : .v6 }
        return network
    }

    /// Looks into a file, unless that could not be read again, such as a pipe.
    private static func check(_ path: String?, _ option: String, has what: String) throws {
        guard let path else { return }
        do {
            guard try Files.isRegular(path) else { return }
            let text = String(decoding: try Files.read(path), as: UTF8.self)
            guard text.contains("\(what)-----") else {
                throw RealtimeError(.system, "\"\(path)\" has no \(what.lowercased()) (PEM)")
            }
        } catch let error as RealtimeError {
            throw RealtimeError(error.code, "\(option): \(error.message)")
        }
    }

    func validate() throws {
        _ = try duration(timeout, "--timeout")
        for (path, option) in [
            (caFile, "--ca-file"), (certificate, "--certificate"),
            (certificateKey, "--certificate-key"), (unixSocket, "--unix-socket"),
            (interface, "--interface"),
        ] {
            try SharedOptions.refuse(empty: path, option)
        }
        if certificateKey != nil, certificate == nil {
            throw ValidationError("--certificate-key needs --certificate.")
        }
        if ipv4, ipv6 { throw ValidationError("--ipv4 and --ipv6 exclude each other.") }
        if unixSocket != nil {
            let unused = [
                ("--proxy", proxy != nil && proxy != "none"), ("--resolve", !resolve.isEmpty),
                ("--interface", interface != nil), ("--ipv4", ipv4), ("--ipv6", ipv6),
            ]
            if let (option, _) = unused.first(where: \.1) {
                throw ValidationError("\(option) is of no use with --unix-socket.")
            }
        }
    }
}

/// Converts seconds, at most a day, so that no arithmetic can overflow.
func duration(_ seconds: Double, _ option: String) throws -> Duration {
    guard seconds > 0, seconds <= longestTime else {
        throw ValidationError(
            "\(option) is \(seconds); more than 0, up to 86400 seconds, is expected.")
    }
    return .milliseconds(max(1, Int64(seconds * 1000)))
}

/// The same for an option that can be 0, for which this is nil.
func duration(orZero seconds: Double, _ option: String) throws -> Duration? {
    guard seconds >= 0, seconds <= longestTime else {
        throw ValidationError("\(option) is \(seconds); 0 to 86400 seconds is expected.")
    }
    return seconds == 0 ? nil : try duration(seconds, option)
}

private let longestTime = 86_400.0

private func parseHeader(_ text: String) throws -> (name: String, value: String) {
    guard let (name, value) = atColon(text) else {
        throw ValidationError("The header \"\(text)\" has no colon; \"Name: value\" is expected.")
    }
    return (String(name), String(Substring(value.utf8.drop { $0 == UInt8(ascii: " ") })))
}

/// The parts before and after the first colon. Searches bytes, because a colon with a combining
/// character after it is another Character.
func atColon(_ text: String) -> (Substring, Substring)? {
    guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    return (text[..<colon], text[text.utf8.index(after: colon)...])
}

private func parseResolve(_ text: String) throws -> Network.Resolve {
    let parts = text.split(separator: ":", maxSplits: 2)
    guard parts.count == 3, let port = Int(parts[1]) else {
        throw ValidationError("\"\(text)\" is not HOST:PORT:ADDRESS.")
    }
    guard parts[0] != "*" else {
        throw ValidationError("\"\(text)\" has * for every host; give one --resolve for each host.")
    }
    return Network.Resolve(host: String(parts[0]), port: port, address: String(parts[2]))
}
