/// Options that most objects share: their prose, and the C functions that set them.
extension Option {
    /// The options that one annotation stands for: headers bring credentials, and a network brings
    /// reachability, to which the property's own prose then belongs.
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
    /// The prose, for all objects.
    var prose: String {
        switch self {
        case .network: "The settings for connections: TLS, proxies, addresses, sockets."
        case .reachability:
            "The reachability monitor. While the server cannot be reached, no attempt is made, not"
                + " even the first, unless a failed one would not be repeated; none is counted, and"
                + " the wait is reported once, without a delay. Once the network returns, the"
                + " attempt follows within a second."
        case .basicAuth:
            "Sets a basic Authorization header (RFC 7617), replacing the URL's user and password."
        case .bearerToken: "Sets an Authorization header with a bearer token (RFC 6750)."
        default: ""
        }
    }

    /// The words about its default; nil for a plain value.
    func words(in language: OptionWords.Language) -> String? {
        switch (self, language) {
        case (.network, .c): "The network is copied. Default: NULL (all defaults)."
        case (.backoff, .c): "The backoff is copied. Default: NULL."
        case (.reachability, .c):
            "The object is retained, not copied. Default: NULL (RT_REACHABILITY_AUTO, shared by"
                + " all objects on the loop)."
        case (.reachability, .swift):
            "It must belong to the same loop. nil means `.auto`, shared by all objects on the loop."
        case (.basicAuth, .c): "NULL as `user_name` removes it."
        case (.bearerToken, .c): "NULL removes it."
        case (.list, .c): "Each call adds one."
        default: isPlain ? nil : ""
        }
    }
}
