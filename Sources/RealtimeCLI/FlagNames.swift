/// Errors of the library name options as Swift programs know them: at their beginning what is wrong
/// with one, and in parentheses what limits something. The user of the tool knows its flags, so
/// these are named instead.
enum FlagNames {
    /// nil for an option that the tool does not offer.
    private static let flags: [(option: String, flag: String?)] = [
        ("attemptTimeout", "--idle-timeout"), ("connectTimeout", "--timeout"),
        ("deadline", "--max-time"), ("openTimeout", "--timeout"),
        ("caFile", "--ca-file"), ("unixSocket", "--unix-socket"), ("tokenFile", "--token-file"),
        ("pingInterval", "--ping"), ("pollTimeout", "--hold"), ("interval", "--interval"),
        ("upgradeInterval", "--upgrade"), ("maxRounds", "--max-rounds"), ("port", "--port"),
        ("option max_document_bytes", nil),
        ("answerTimeout", nil), ("authTimeout", nil), ("clientEventQueue", nil),
        ("heartbeatTimeout", nil), ("idleTimeout", nil), ("maxAttempts", nil),
        ("maxBodyBytes", nil), ("maxCallRepeats", nil), ("maxEventBytes", nil),
        ("maxHeaderBytes", nil), ("maxInflateRatio", nil), ("maxLineBytes", nil),
        ("maxMessageBytes", nil), ("maxNameBytes", nil), ("maxReconnects", nil),
        ("maxRedirects", nil), ("allowInsecureRedirects", nil), ("maxUnsentBytes", nil),
        ("offlineQueue", nil), ("pongTimeout", nil), ("queueCapacity", nil),
        ("queueTime", nil), ("reconnectAttemptsMax", nil), ("redirectOrigins", nil),
        ("responseTimeout", nil), ("sendLimitBytes", nil),
    ]

    static func put(into message: String) -> String {
        let text = putFirst(into: message)
        guard text.contains(" (") else { return text }
        return flags.reduce(text) { text, name in
            text.replacing(" (\(name.option))", with: name.flag.map { " (\($0))" } ?? "")
        }
    }

    /// The flag for the option in parentheses; nil if the tool has none for it.
    static func flag(in message: String) -> String? {
        flags.first { message.contains(" (\($0.option))") }?.flag
    }

    /// Replaces the option that a message is about.
    private static func putFirst(into message: String) -> String {
        let name = message.prefix { $0 != " " }
        let rest = message[name.endIndex...]
        guard rest.hasPrefix(" is ") || rest.hasPrefix(" has "),
            let flag = flags.first(where: { $0.option == name })?.flag
        else { return message }
        return flag + rest
    }
}
