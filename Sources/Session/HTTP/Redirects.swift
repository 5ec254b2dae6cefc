package import Wire

/// The rules for redirects in HTTP and in the WebSocket handshake (RFC 9110 §15.4; docs/http.md, G7
/// and G8), and how many were followed.
package struct Redirects: Sendable {
    package struct Rules: Sendable, Equatable {
        /// How many redirects are followed (301, 302, 303, 307 and 308). With 0 a redirect is
        /// reported like any other response. A redirect to another origin carries only these
        /// headers: Accept, Accept-Encoding, Accept-Language, Cache-Control, Content-Type,
        /// Last-Event-ID, User-Agent, and those set as safe.
        /// - Option: max_redirects, count 0...20
        package var maximum = 20
        /// Whether a redirect may lead from https to http, or from wss to ws.
        /// - Option: allow_insecure_redirects, flag
        package var allowsInsecure = false
        /// Names of headers that are also sent when a redirect leads to another origin.
        /// - Option: safe_headers, list INVALID_HEADER for text that is not a token
        package var safeNames: [String] = []
        /// Origins that a redirect may lead to as if they were the URL's own: scheme, host and
        /// port, such as "https://files.example.org", or "*" for all. They receive everything: all
        /// headers, credentials, bodies and messages. A redirect to any other origin fails with
        /// RT_ERROR_REDIRECT if a body would be sent there, or the messages of a WebSocket, unless
        /// it is the same host by TLS.
        /// - Option: redirect_origins, list INVALID_URL for text that is not an origin;
        ///   RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_INVALID_ARGUMENT, parameter origin
        package private(set) var origins = TrustedOrigins()

        /// The object whose options these rules are; the objects inside it have the same rules.
        package var owner: OptionOwner

        package init(of owner: OptionOwner, maximum: Int = 20) {
            self.owner = owner
            self.maximum = maximum
        }

        package mutating func addSafeName(_ name: String) throws(RealtimeError) {
            try HeaderField.validate(name: name, value: "", mayExpect: true)
            guard !name.equalsIgnoringASCIICase("Host") else {
                throw RealtimeError(
                    .invalidHeader, "The header \(name.quoted()) is never sent to another origin")
            }
            safeNames.append(name)
        }

        package mutating func addOrigin(_ origin: String) throws(RealtimeError) {
            try origins.add(origin, mayBeWebSocket: true)
        }
    }

    private var hops: UInt8 = 0
    /// After a redirect to an origin that is not trusted, credentials are not sent again, even if a
    /// later one leads back.
    package private(set) var leftOrigin = false

    private static let statuses = [301, 302, 303, 307, 308]

    /// The caller's headers that another origin may see (G8).
    private static let harmlessNames = [
        "Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Content-Type",
        "Last-Event-ID", "User-Agent",
    ]

    /// Whether a header may be sent to an origin for which it was not meant (G8).
    package static func isHarmless(_ name: String, _ rules: Rules) -> Bool {
        (harmlessNames + rules.safeNames).contains { $0.equalsIgnoringASCIICase(name) }
    }

    package init() {}

    /// Whether a response is a redirect, and redirects are followed.
    package static func follows(_ head: ResponseHead, _ rules: Rules) -> Bool {
        rules.maximum > 0 && statuses.contains(head.status)
    }

    /// Follows a redirect, if the response is one and redirects are followed.
    /// - Parameters:
    ///   - url: the URL of the response; becomes the next URL.
    ///   - fields: the headers of the next request. Those that its origin may not see are removed.
    ///   - origin: the first URL. Its user and password are kept for as long as its origin is not
    ///     left.
    ///   - load: what would be sent to the next URL besides headers; nil for nothing. Nobody can
    ///     say which part of it is secret, so it is not sent to another origin.
    /// - Returns: whether to request the next URL.
    /// - Throws: `.redirect` if it cannot be followed, `.insecureRedirect`.
    package mutating func follow(
        _ head: ResponseHead, _ url: inout HTTPURL, _ fields: inout [HeaderField],
        from origin: HTTPURL, with load: String?, _ rules: Rules
    ) throws(RealtimeError) -> Bool {
        guard Redirects.follows(head, rules) else { return false }
        let name = url.displayName
        guard hops < rules.maximum else {
            throw RealtimeError(
                .redirect,
                "\(name) redirects again after \(hops) redirects"
                    + rules.owner.mention(.maxRedirects))
        }
        let next = try Redirects.location(head, url)
        if url.isSecure, !next.isSecure, !rules.allowsInsecure {
            throw RealtimeError(
                .insecureRedirect,
                "\(name) redirects to \(next.displayName) without TLS, which is not allowed"
                    + rules.owner.mention(.allowInsecureRedirects))
        }
        if !next.hasSameOrigin(as: origin), !rules.origins.contains(next) {
            if let load, !next.isSecured(origin) {
                throw RealtimeError(
                    .redirect,
                    "\(name) redirects to another origin, \(next.origin), which may not receive"
                        + " \(load)" + rules.owner.mention(.redirectOrigins))
            }
            leftOrigin = true
            fields.removeAll { !Redirects.isHarmless($0.name, rules) }
        }
        hops += 1
        url = next.withCredentials(of: leftOrigin ? nil : origin)
        return true
    }

    /// Follows a redirect of a request, which may change its method and body (RFC 9110 §15.4).
    package mutating func follow(
        _ head: ResponseHead, _ request: inout HTTPRequest, from origin: HTTPURL, _ rules: Rules
    ) throws(RealtimeError) -> Bool {
        let becomesGet =
            switch head.status {
            case 301, 302: request.method == "POST"
            case 303: request.method != "GET" && request.method != "HEAD"
            default: false
            }
        let load = becomesGet || request.body.isEmpty ? nil : "the body of the request"
        guard
            try follow(head, &request.url, &request.fields, from: origin, with: load, rules)
        else { return false }
        if becomesGet {
            request.method = "GET"
            request.body = .none
            request.fields.removeAll { $0.name.prefix(8).equalsIgnoringASCIICase("Content-") }
        }
        return true
    }

    private static func location(
        _ head: ResponseHead, _ url: HTTPURL
    ) throws(RealtimeError) -> HTTPURL {
        let locations = head.contents("Location").map { $0.bytes }
        guard let location = locations.first, locations.count == 1, !location.isEmpty else {
            throw RealtimeError(
                .redirect, "\(url.displayName) answered \(head.status) without a unique Location")
        }
        do throws(RealtimeError) {
            return try url.resolving(redirect: location)
        } catch {
            throw RealtimeError(
                .redirect,
                "\(url.displayName) sent a redirect that cannot be followed: \(error.message)")
        }
    }
}
