package import Wire

/// The options of a client, for all of its requests.
/// - Object: rest, REST.Options, before the first request
package struct RESTConfiguration: Sendable {
    package enum Overflow: Int32, Sendable {
        /// The new request fails.
        case rejectNew = 0
        /// The one that has waited longest fails.
        case dropOldest = 1
    }

    /// The base URL against which paths of requests are resolved.
    package private(set) var base = RESTBase()
    /// Sent with every request that does not set a header of the same name. They are not sent to
    /// origins other than the base URL's, not even after a redirect; see `credential_origins` and
    /// `safe_headers`.
    /// - Option: headers, headers
    package private(set) var headers = HeaderFields()
    /// The Authorization header, which the session sets and replaces.
    package private(set) var authorization: String?
    /// - Options: RESTPolicy
    package var policy = RESTPolicy()
    /// Sets `base_delay`, `max_delay`, `delay_factor` and `jitter` at once; without a backoff each
    /// has its default. The backoff's limit of attempts and stable time are not used; `attempts`
    /// sets the limit.
    /// - Option: backoff, backoff, swift elsewhere
    package var backoff: BackoffConfiguration? {
        get { policy.backoff }
        set {
            policy.backoff = newValue ?? BackoffConfiguration()
            policy.backoff.attemptLimit = 0
        }
    }
    /// - Option: network, network
    package var network = NetworkConfiguration()
    /// How many requests may wait for the network or for an earlier ordered request; further ones
    /// end with RT_ERROR_QUEUE_FULL. Requests that wait for a connection to their host do not
    /// count. In all, a client may have at most 65,536 unfinished requests.
    /// - Option: queue_capacity, count 0...
    package var queueCapacity = 100
    /// Which request fails when the queue is full: the new one, or the one that has waited longest.
    /// - Option: queue_overflow, choice rt_rest_overflow RT_REST_OVERFLOW REST.Overflow rejectNew
    ///   dropOldest
    package var overflow = Overflow.rejectNew
    /// How many connections to one origin are used at a time. Over HTTP/1.1 this is the number of
    /// requests in progress; others wait. Over HTTP/2, requests share a connection: up to 100 are
    /// in progress, or this number if it is larger. The server limits how many of them one
    /// connection may carry (SETTINGS_MAX_CONCURRENT_STREAMS).
    /// - Option: max_per_host, count 1...1000
    package var perHost = 6
    /// Origins that receive the client's credential (basic, bearer token, Authorization) and
    /// headers, in addition to the base URL's, which always does: scheme, host and port, such as
    /// "https://files.example.org", or "*" for all. Requests may have any absolute URL, but other
    /// origins receive only harmless headers: Accept, Accept-Encoding, Accept-Language,
    /// Cache-Control, Content-Type, Last-Event-ID, User-Agent and those of `safe_headers`. Headers
    /// set on the request itself are always sent. A client without a base URL and without such an
    /// origin sends everything to every URL. Redirects do not count here, see `redirect_origins`.
    /// - Option: credential_origins, list INVALID_URL for text that is not an origin;
    ///   RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_INVALID_ARGUMENT, parameter origin
    package private(set) var credentialOrigins = TrustedOrigins()
    /// A query parameter that also carries the bearer token.
    package var tokenParameter: String?
    /// - Options: HTTPOptions, only compression http2
    package var http = HTTPOptions()

    package init() {}

    package mutating func setBase(_ url: String) throws(RealtimeError) {
        let parsed = try HTTPURL(parsing: url, as: .http)
        guard !parsed.target.utf8.contains(UInt8(ascii: "?")) else {
            throw RealtimeError(
                .invalidURL, "the base URL \(HTTPURL.redacted(url)) has a query")
        }
        setBase(parsed)
    }

    /// - Parameter url: without a query.
    package mutating func setBase(_ url: HTTPURL) { base = RESTBase(url) }

    package mutating func addHeader(name: String, value: String) throws(RealtimeError) {
        try HeaderField.validate(name: name, value: value)
        try HeaderField.validate(adding: name, to: headers)
        if isAuthorization(name) {
            authorization = value
        } else {
            headers.append(HeaderField(name: name, value: value))
        }
    }

    /// Sets a header, which replaces all with the same name. nil removes them.
    package mutating func setHeader(name: String, value: String?) throws(RealtimeError) {
        try HeaderField.validate(name: name, value: value ?? "")
        if isAuthorization(name) {
            authorization = value
        } else {
            headers.set(name, value)
        }
    }

    package mutating func clearHeaders() {
        headers = HeaderFields()
        authorization = nil
    }

    /// - Parameter origin: a URL with only scheme, host and port, or "*" for all.
    package mutating func addCredentialOrigin(_ origin: String) throws(RealtimeError) {
        try credentialOrigins.add(origin)
    }

    /// Whether a request to `url` may carry the client's own credential and headers. Without a base
    /// URL, the caller chose the origin of each request itself.
    package func trusts(_ url: HTTPURL) -> Bool {
        if credentialOrigins.contains(url) { return true }
        guard let home = base.url else { return credentialOrigins.isEmpty }
        return url.hasSameOrigin(as: home)
    }

    /// The client's headers for a request, without Authorization, which the session adds.
    package func fields(isTrusted: Bool) -> [HeaderField] {
        if isTrusted { return headers.all }
        return headers.all.filter { Redirects.isHarmless($0.name, policy.redirects) }
    }
}

/// The base URL of a client's requests. Separate from the other options, because it is copied for
/// each request.
package struct RESTBase: Sendable {
    package private(set) var url: HTTPURL?
    /// The base URL's path, without slashes at the end.
    private var root = ""

    init() {}

    /// - Parameter url: without a query.
    init(_ url: HTTPURL) {
        self.url = url
        root = url.target
        while root.utf8.last == UInt8(ascii: "/") { root.removeLast() }
    }

    /// The URL of a request: an absolute URL unchanged, or a path below the base URL with exactly
    /// one slash between them.
    /// - Parameter parse: parses an absolute URL.
    package func url(
        of path: String,
        parse: (String) throws(RealtimeError) -> HTTPURL = { text throws(RealtimeError) in
            try HTTPURL(parsing: text, as: .http)
        }
    ) throws(RealtimeError) -> HTTPURL {
        // The usual case, a path that is the target itself, avoids the slower steps below.
        if let url, root.isEmpty, path.hasPrefix("/"), !path.hasPrefix("//"),
            let plain = url.withPlainTarget(path)
        {
            return plain
        }
        guard let url else { return try parse(path) }
        if isAbsolute(path) {
            let whole = try parse(path)
            // The base URL's user and password are for its origin, unless the URL has its own.
            let takesBase =
                whole.user == nil && whole.password == nil && whole.hasSameOrigin(as: url)
            return takesBase ? whole.withCredentials(of: url) : whole
        }
        let path = path.withoutFragment
        if path.isEmpty { return url }
        let rest = Substring(path.utf8.drop { $0 == UInt8(ascii: "/") })
        let isWhole = rest.utf8.first == UInt8(ascii: "?") && !root.isEmpty
        let target = root + (isWhole ? "" : "/") + rest
        if let plain = url.withPlainTarget(target) { return plain }
        try checkBelowBase(rest, url)
        return try HTTPURL(parsing: url.connectURL + target, as: .http)
            .withCredentials(of: url)
    }
}

/// Rejects a path that leads out of the base URL, which its caller did not intend (RFC 3986
/// §5.2.4). Servers decode in different orders, so encoded dots and slashes count as well. Some,
/// such as Tomcat, remove a segment's parameters before they look for dots: "..;a" is "..".
package func checkBelowBase(_ path: Substring, _ base: HTTPURL) throws(RealtimeError) {
    var depth = 0
    var segment: [UInt8] = []
    func leave() -> Bool {
        switch Array(segment.prefix { $0 != UInt8(ascii: ";") }) {
        case Array("..".utf8): depth -= 1
        case [], Array(".".utf8): break
        default: depth += 1
        }
        segment = []
        return depth < 0
    }
    var isOutside = false
    var rest = path.utf8[...]
    while let byte = rest.popFirst(), byte != UInt8(ascii: "?"), byte != UInt8(ascii: "#") {
        var byte = byte
        if byte == UInt8(ascii: "%"),
            let value = UInt8(String(Substring(rest.prefix(2))), radix: 16)
        {
            byte = value
            rest = rest.dropFirst(2)
        }
        if byte == UInt8(ascii: "/") || byte == UInt8(ascii: "\\") {
            isOutside = leave() || isOutside
        } else {
            segment.append(byte)
        }
    }
    guard !leave(), !isOutside else {
        throw RealtimeError(
            .invalidURL,
            "the path \(String(path).withoutQuery.quoted()) leads out of the base URL"
                + " \(base.displayName)\(base.target)")
    }
}

private func isAuthorization(_ name: String) -> Bool {
    name.equalsIgnoringASCIICase("Authorization")
}

/// Whether it has a scheme and an authority (RFC 3986 §4.3). A colon alone may belong to a path.
private func isAbsolute(_ path: String) -> Bool {
    guard let end = path.utf8.firstIndex(where: { ":/?#".utf8.contains($0) }) else { return false }
    return path.utf8[end...].starts(with: "://".utf8)
}

/// Returns the method if it can be sent (RFC 9110 §9.1).
package func checkedMethod(_ method: String) throws(RealtimeError) -> String {
    guard method.isToken, method.utf8.count <= 64, method != "CONNECT" else {
        throw RealtimeError(
            .invalidArgument, "the method \(method.quoted(upTo: 64)) is not a token, or is CONNECT")
    }
    return method
}
