/// The names and the order that do not follow from the sources.
enum Naming {
    /// Subjects in the header's order.
    private static let subjects = [
        "General", "Loop", "Network", "Backoff", "Reachability", "Views", "Call", "WebSocket",
        "EventSource", "EventStreamParser", "LongPoll", "REST", "RESTResponse", "RESTRequest",
        "Spreadbot", "Pusher", "PusherChannel", "PusherAuthorization", "PusherUser", "PusherPush",
        "DDP", "DDPSubscriptions", "DDPDocuments", "DDPFeed", "DDPModels", "DDPCalls",
        "DDPStubs", "DDPAccounts",
    ]

    /// The chapters of a subject, by the suffix of their names; creating and freeing are in the
    /// first.
    private static let parts = ["", "Options", "Callbacks", "Use", "Blocking"]

    /// A constant is its enum's name, `_`, and its case's name. Statuses are used everywhere, so
    /// their constants are shorter: `RT_OK`, `RT_ERROR_CLOSED`.
    static let constantPrefixes = ["RT_STATUS": "RT"]

    /// The prefix of every exported name.
    static let functionPrefix = "rt_"
    static let constantPrefix = "RT_"

    static func constant(_ name: String, of group: String) -> String {
        "\(constantPrefixes[group] ?? group)_\(name)"
    }

    /// A chapter's place in the header; nil for a subject that is not listed.
    static func rank(ofChapter name: String) -> Int? {
        for (index, subject) in subjects.enumerated() where name.hasPrefix(subject) {
            if let part = parts.firstIndex(of: String(name.dropFirst(subject.count))) {
                return index * parts.count + part
            }
        }
        return nil
    }

    /// Words that cannot be the name of a parameter or field in C23 or C++20.
    static let reserved: Set<String> = [
        "alignas", "alignof", "and", "asm", "auto", "bool", "break", "case", "catch", "char",
        "class", "concept", "const", "constexpr", "continue", "decltype", "default", "delete",
        "do", "double", "else", "enum", "explicit", "export", "extern", "false", "float", "for",
        "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new",
        "noexcept", "not", "nullptr", "operator", "or", "private", "protected", "public",
        "register", "requires", "restrict", "return", "short", "signed", "sizeof", "static",
        "struct", "switch", "template", "this", "throw", "true", "try", "typedef", "typeid",
        "typename", "typeof", "union", "unsigned", "using", "virtual", "void", "volatile",
        "while", "xor",
    ]
}
