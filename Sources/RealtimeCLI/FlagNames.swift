/// Errors of the library name the options that limit something as Swift programs know them. The
/// user of the tool knows its flags, so these are named instead.
enum FlagNames {
    /// nil for an option that the tool does not offer.
    private static let flags: [(option: String, flag: String?)] = [
        ("attemptTimeout", "--idle-timeout"), ("connectTimeout", "--timeout"),
        ("deadline", "--max-time"), ("openTimeout", "--timeout"),
        ("answerTimeout", nil), ("authTimeout", nil), ("clientEventQueue", nil),
        ("idleTimeout", nil), ("maxAttempts", nil), ("maxBodyBytes", nil), ("maxCallRepeats", nil),
        ("maxEventBytes", nil),
        ("maxHeaderBytes", nil), ("maxInflateRatio", nil), ("maxLineBytes", nil),
        ("maxMessageBytes", nil), ("maxNameBytes", nil), ("maxReconnects", nil),
        ("maxRedirects", nil), ("allowInsecureRedirects", nil), ("maxUnsentBytes", nil),
        ("offlineQueue", nil), ("pongTimeout", nil), ("queueCapacity", nil),
        ("queueTime", nil), ("reconnectAttemptsMax", nil), ("sendLimitBytes", nil),
    ]

    static func put(into message: String) -> String {
        guard message.contains(" (") else { return message }
        return flags.reduce(message) { text, name in
            text.replacing(" (\(name.option))", with: name.flag.map { " (\($0))" } ?? "")
        }
    }
}
