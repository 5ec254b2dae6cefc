package import Wire

/// The rules of redirects for all of HTTP and for the WebSocket's handshake (RFC 9110 §15.4;
/// docs/http.md, G7 and G8), and how many were followed.
package struct Redirects: Sendable {
    package struct Rules: Sendable, Equatable {
        /// How many redirects are followed (301, 302, 303, 307 and 308). With 0 a redirect is an
        /// answer like any other. On the way to another origin only these headers go along: Accept,
        /// Accept-Encoding, Accept-Language, Cache-Control, Content-Type, Last-Event-ID,
        /// User-Agent, and those that the caller named as safe.
        /// - Option: max_redirects, count 0...20
        package var maximum = 20
        /// Whether a redirect may lead from https to http, or from wss to ws.
        /// - Option: allow_insecure_redirects, flag
        package var allowsInsecure = false
        /// Names of headers that also go along when a redirect leads to another origin.
        /// - Option: safe_headers, list INVALID_HEADER for what is not a token
        package var safeNames: [String] = []

        package init(maximum: Int = 20) { self.maximum = maximum }

        package mutating func addSafeName(_ name: String) throws(RealtimeError) {
            try HeaderField.validate(name: name, value: "", mayExpect: true)
            safeNames.append(name)
        }
    }

    private var hops: UInt8 = 0
    /// Once a redirect has led to another origin, credentials do not come back.
    private var leftOrigin = false

    private static let statuses = [301, 302, 303, 307, 308]

    /// What another origin may see of the caller's headers (G8).
    private static let harmlessNames = [
        "Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Content-Type",
        "Last-Event-ID", "User-Agent",
    ]

    /// Whether a header may be shown to an origin that it was not meant for (G8).
    package static func isHarmless(_ name: String, _ rules: Rules) -> Bool {
        (harmlessNames + rules.safeNames).contains { $0.equalsIgnoringASCIICase(name) }
    }

    package init() {}

    /// Whether an answer is a redirect, and such ones are followed.
    package static func follows(_ head: ResponseHead, _ rules: Rules) -> Bool {
        rules.maximum > 0 && statuses.contains(head.status)
    }

    /// Follows a redirect, if the answer is one and they are followed.
    /// - Parameters:
    ///   - url: where the answer came from; becomes the next place.
    ///   - fields: lose what the next place may not see.
    ///   - origin: the first URL, whose user and password go along while its origin lasts.
    /// - Returns: whether there is a next place.
    /// - Throws: `.redirect` for one that cannot be followed, `.insecureRedirect`.
    package mutating func follow(
        _ head: ResponseHead, _ url: inout HTTPURL, _ fields: inout [HeaderField],
        from origin: HTTPURL, _ rules: Rules
    ) throws(RealtimeError) -> Bool {
        guard Redirects.follows(head, rules) else { return false }
        let name = url.displayName
        guard hops < rules.maximum else {
            throw RealtimeError(
                .redirect,
                "\(name) redirects, having been redirected \(hops) times (max_redirects)")
        }
        let next = try Redirects.place(head, url)
        if url.isSecure, !next.isSecure, !rules.allowsInsecure {
            throw RealtimeError(
                .insecureRedirect,
                "\(name) redirects to \(next.displayName) without TLS"
                    + " (allow_insecure_redirects is off)")
        }
        hops += 1
        if !next.hasSameOrigin(as: origin) {
            leftOrigin = true
            fields.removeAll { !Redirects.isHarmless($0.name, rules) }
        }
        url = next.withCredentials(of: leftOrigin ? nil : origin)
        return true
    }

    /// Follows a redirect of a request, whose method and body may change with it (RFC 9110 §15.4).
    package mutating func follow(
        _ head: ResponseHead, _ request: inout HTTPRequest, from origin: HTTPURL, _ rules: Rules
    ) throws(RealtimeError) -> Bool {
        guard try follow(head, &request.url, &request.fields, from: origin, rules) else {
            return false
        }
        let becomesGet =
            switch head.status {
            case 301, 302: request.method == "POST"
            case 303: request.method != "GET" && request.method != "HEAD"
            default: false
            }
        if becomesGet {
            request.method = "GET"
            request.body = .none
            request.fields.removeAll { $0.name.prefix(8).equalsIgnoringASCIICase("Content-") }
        }
        return true
    }

    private static func place(
        _ head: ResponseHead, _ url: HTTPURL
    ) throws(RealtimeError) -> HTTPURL {
        let locations = head.contents("Location").map { $0.bytes }
        guard let location = locations.first, locations.count == 1, !location.isEmpty else {
            throw RealtimeError(
                .redirect, "\(url.displayName) answered \(head.status) without one Location")
        }
        do throws(RealtimeError) {
            return try url.resolving(redirect: location)
        } catch {
            throw RealtimeError(
                .redirect,
                "\(url.displayName) redirects to what cannot be followed: \(error.message)")
        }
    }
}
