/// Options that most objects have, and that are more than one value: what they say, and the
/// functions of C that set them.
extension Option {
    /// Those that one annotation stands for: headers bring credentials, and what connects asks
    /// whether there is a network. What its property says is about the latter then.
    var expanded: [Option] {
        switch kind {
        case .headers(credentials: true):
            [self, with(.basicAuth, "basic_auth", "auth"), with(.bearerToken, "bearer_token")]
        case .network:
            [with(kind, name, pythonPlace), with(.reachability, "reachability", own: prose)]
        default: [self]
        }
    }

    private func with(
        _ kind: OptionKind, _ name: String, _ place: String? = nil, own: String = ""
    ) -> Option {
        var other = self
        (other.name, other.kind, other.pythonPlace) = (name, kind, place ?? name)
        other.prose = kind.prose + (own.isEmpty ? "" : " \(own)")
        if other.kind != self.kind { other.swiftName = kind == .reachability ? name : nil }
        return other
    }

    /// The configuration's function that adds one: `redirects.addSafeName` beside
    /// `redirects.safeNames`.
    var addition: String {
        var parts = path.split(separator: ".").map { String($0) }
        let one = parts.removeLast().dropLast()
        return (parts + ["add\(one.prefix(1).uppercased())\(one.dropFirst())"])
            .joined(separator: ".")
    }
}

extension OptionKind {
    /// What it says for all objects.
    var prose: String {
        switch self {
        case .network: "How connections are made: TLS, proxies, addresses, sockets."
        case .reachability:
            "Says whether there is a network. While there is none, no attempt is made or counted;"
                + " when there is one again, the next attempt follows within a second."
        case .basicAuth:
            "Sets a basic Authorization header (RFC 7617), in place of the URL's user and password."
        case .bearerToken: "Sets an Authorization header with a bearer token (RFC 6750)."
        default: ""
        }
    }

    /// What is said of its default; nil for a plain value.
    func words(in language: OptionWords.Language) -> String? {
        switch (self, language) {
        case (.network, .c): "The network is copied. Default NULL: one with all defaults."
        case (.backoff, .c): "The backoff is copied. Default NULL."
        case (.reachability, .c):
            "The object is retained, not copied. Default NULL: RT_REACHABILITY_AUTO, one for all"
                + " objects of the loop."
        case (.reachability, .swift):
            "It belongs to the same loop. nil is `.auto`, one for all objects of the loop."
        case (.basicAuth, .c): "A NULL user removes it."
        case (.bearerToken, .c): "NULL removes it."
        case (.list, .c): "This adds one."
        default: isPlain ? nil : ""
        }
    }
}
