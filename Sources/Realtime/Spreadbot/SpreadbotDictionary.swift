public import Wire

extension Spreadbot.Configuration {
    /// Creates a configuration from a dictionary. Its keys are the names of the properties, for
    /// example `["baseURL": "https://example.org", "transports": ["sse", "poll"]]`.
    ///
    /// Values have the type of the property, or a simpler one:
    /// - for a time, a number of seconds; for a limit, 0 means no limit;
    /// - for `transports`, an array of `"webSocket"`, `"sse"` and `"poll"`; for `transportURLs`, a
    ///   dictionary with these keys;
    /// - for `headers`, a dictionary of names and values;
    /// - for `queueOverflow`, `"rejectNew"` or `"dropOldest"`;
    /// - for `executor`, `"main"` or `"loop"`.
    /// - Throws: `RealtimeError(.invalidArgument)` for an unknown key, a value that is not
    ///   accepted, or a missing `baseURL`. The message names the key and the accepted values. It
    ///   never shows the value, which may be secret.
    public init(_ dictionary: [String: any Sendable]) throws(RealtimeError) {
        self.init(baseURL: "")
        for (key, value) in dictionary.sorted(by: { $0.key < $1.key }) {
            guard let option = Spreadbot.Configuration.options[key] else {
                let known = Spreadbot.Configuration.options.keys.sorted().joined(separator: ", ")
                throw RealtimeError(
                    .invalidArgument,
                    "the configuration has the unknown key \"\(key)\"; the known keys are \(known)")
            }
            guard option.set(&self, value) else {
                throw RealtimeError(
                    .invalidArgument,
                    "the configuration's \"\(key)\" has a value of the type \(type(of: value)) that"
                        + " is not accepted; \(option.expected) is expected")
            }
        }
        guard !baseURL.isEmpty else {
            throw RealtimeError(.invalidArgument, "the configuration needs a \"baseURL\"")
        }
    }

    private static let options: [String: DictionaryOption] = [
        "baseURL": .value(\.baseURL, "a String"),
        "authURL": .optional(\.authURL, "a String"),
        "accessToken": .value(\.accessToken, "a String"),
        "refreshToken": .value(\.refreshToken, "a String"),
        "base64Credentials": .value(\.base64Credentials, "a String"),
        "log": .value(\.log, "a Bool"),
        "transports": .converted(\.transports, "an array of \(transportNames)", transports),
        "transportURLs": .converted(
            \.transportURLs, "a dictionary from \(transportNames) to String", transportURLs),
        "sendURL": .optional(\.sendURL, "a String"),
        "lastEventID": .value(\.lastEventID, "a String"),
        "outbox": .optional(\.outbox, "a String with a path"),
        "maxBufferedMessages": .value(\.maxBufferedMessages, "an Int"),
        "maxBufferedBytes": .value(\.maxBufferedBytes, "an Int"),
        "executor": .converted(
            \.executor, "\"main\", \"loop\" or a Spreadbot.Executor", executor),
        "tokenQueryParameter": .optional(\.tokenQueryParameter, "a String"),
        "idQueryParameter": .optional(\.idQueryParameter, "a String"),
        "headers": .converted(\.headers, "a dictionary from String to String", headers),
        "network": .value(\.network, "a Network"),
        "reachability": .optional(\.reachability, "a Reachability"),
        "maxRedirects": .value(\.maxRedirects, "an Int"),
        "allowInsecureRedirects": .value(\.allowInsecureRedirects, "a Bool"),
        "safeHeaders": .value(\.safeHeaders, "an array of String"),
        "redirectOrigins": .value(\.redirectOrigins, "an array of String"),
        "compression": .value(\.compression, "a Bool"),
        "http2": .value(\.http2, "a Bool"),
        "connectTimeout": .limit(\.connectTimeout),
        "maxReconnects": .value(\.maxReconnects, "an Int"),
        "maxRounds": .value(\.maxRounds, "an Int"),
        "maxDelay": .time(\.maxDelay),
        "stableTime": .time(\.stableTime),
        "upgradeInterval": .limit(\.upgradeInterval),
        "maxUpgradeInterval": .time(\.maxUpgradeInterval),
        "answerTimeout": .limit(\.answerTimeout),
        "pingInterval": .limit(\.pingInterval),
        "pollInterval": .time(\.pollInterval),
        "pollTimeout": .limit(\.pollTimeout),
        "queueCapacity": .value(\.queueCapacity, "an Int"),
        "queueOverflow": .converted(
            \.queueOverflow, "\"rejectNew\", \"dropOldest\" or a REST.Overflow", overflow),
        "maxMessageBytes": .value(\.maxMessageBytes, "an Int"),
        "backoff": .optional(\.backoff, "a Backoff"),
    ]

    private static let transportNames = Spreadbot.Transport.allCases
        .map { "\"\($0.rawValue)\"" }.joined(separator: ", ")

    private static func transports(_ value: any Sendable) -> [Spreadbot.Transport]? {
        if let transports = value as? [Spreadbot.Transport] { return transports }
        guard let names = value as? [String] else { return nil }
        let transports = names.compactMap { Spreadbot.Transport(rawValue: $0) }
        return transports.count == names.count ? transports : nil
    }

    private static func transportURLs(_ value: any Sendable) -> [Spreadbot.Transport: String]? {
        if let urls = value as? [Spreadbot.Transport: String] { return urls }
        guard let named = value as? [String: String] else { return nil }
        var urls: [Spreadbot.Transport: String] = [:]
        for (name, url) in named {
            guard let transport = Spreadbot.Transport(rawValue: name) else { return nil }
            urls[transport] = url
        }
        return urls
    }

    private static func executor(_ value: any Sendable) -> HandlerExecutor? {
        switch value as? String {
        case "main": .main
        case "loop": .loop
        default: value as? HandlerExecutor
        }
    }

    private static func headers(_ value: any Sendable) -> [(name: String, value: String)]? {
        if let headers = value as? [(name: String, value: String)] { return headers }
        guard let values = value as? [String: String] else { return nil }
        return values.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
    }

    private static func overflow(_ value: any Sendable) -> REST.Overflow? {
        switch value as? String {
        case "rejectNew": .rejectNew
        case "dropOldest": .dropOldest
        default: value as? REST.Overflow
        }
    }
}

/// How one key of the dictionary sets its property.
private struct DictionaryOption: Sendable {
    typealias Configuration = Spreadbot.Configuration
    typealias Path<Value> = WritableKeyPath<Configuration, Value> & Sendable

    /// For the error message.
    let expected: String
    /// - Returns: false for a value that is not accepted.
    let set: @Sendable (inout Configuration, any Sendable) -> Bool

    static func converted<Value>(
        _ path: any Path<Value>, _ expected: String,
        _ convert: @escaping @Sendable (any Sendable) -> Value?
    ) -> DictionaryOption {
        DictionaryOption(expected: expected) { configuration, value in
            guard let converted = convert(value) else { return false }
            configuration[keyPath: path] = converted
            return true
        }
    }

    static func value<Value: Sendable>(
        _ path: any Path<Value>, _ expected: String
    ) -> DictionaryOption {
        converted(path, expected) { $0 as? Value }
    }

    static func optional<Value: Sendable>(
        _ path: any Path<Value?>, _ expected: String
    ) -> DictionaryOption {
        converted(path, expected) { value in (value as? Value).map { .some($0) } }
    }

    static func time(_ path: any Path<Duration>) -> DictionaryOption {
        converted(path, "a Duration or a number of seconds, 0 or more,", duration)
    }

    static func limit(_ path: any Path<Duration?>) -> DictionaryOption {
        converted(path, "a Duration or a number of seconds, 0 for no limit,") { value in
            duration(value).map { $0 == .zero ? nil : $0 }
        }
    }

    @Sendable private static func duration(_ value: any Sendable) -> Duration? {
        if let duration = value as? Duration { return duration }
        if let seconds = value as? Int { return seconds < 0 ? nil : .seconds(seconds) }
        guard let seconds = value as? Double, seconds >= 0, seconds < 1e10 else { return nil }
        return .seconds(seconds)
    }
}
