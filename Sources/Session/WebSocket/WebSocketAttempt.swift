package import Wire

/// Where one attempt to connect goes and what its request says: as configured at first, and then as
/// redirects change it (RFC 9110 §15.4; sse-poll-rest.md, G7 and G8).
package struct WebSocketAttempt: Sendable {
    package private(set) var url: WebSocketURL
    package private(set) var fields: [HeaderField]
    private var hops = 0
    /// Once a redirect has led to another origin, credentials do not come back.
    private var leftOrigin = false

    private static let redirectStatuses = [301, 302, 303, 307, 308]

    /// What another origin may see of the caller's headers (G8).
    private static let harmlessNames = [
        "Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Content-Type",
        "Last-Event-ID", "User-Agent",
    ]

    package init(_ configuration: WebSocketConfiguration) {
        url = configuration.url
        fields = configuration.fields
    }

    /// Follows a redirect, if the answer is one and they are followed.
    /// - Returns: whether there is a new place to connect to.
    /// - Throws: `.redirect` for one that cannot be followed.
    package mutating func follows(
        _ head: ResponseHead, _ configuration: WebSocketConfiguration
    ) throws(RealtimeError) -> Bool {
        guard configuration.maxRedirects > 0,
            WebSocketAttempt.redirectStatuses.contains(head.status)
        else { return false }
        guard hops < configuration.maxRedirects else {
            throw failure("redirects for the \(hops + 1)th time (max_redirects)")
        }
        let locations = head.values("Location")
        guard let location = locations.first, locations.count == 1, !location.isEmpty else {
            throw failure("answered \(head.status) without one Location")
        }
        let next: WebSocketURL
        do throws(RealtimeError) {
            next = try url.resolving(redirect: location)
        } catch {
            throw failure("redirects to what cannot be followed: \(error.message)")
        }
        if url.isSecure, !next.isSecure, !configuration.allowsInsecureRedirects {
            throw failure(
                "redirects to \(next.displayName) without TLS (allow_insecure_redirects is off)")
        }
        hops += 1
        if !next.hasSameOrigin(as: configuration.url) {
            leftOrigin = true
            fields.removeAll { field in
                !WebSocketAttempt.harmlessNames.contains {
                    $0.equalsIgnoringASCIICase(field.name)
                }
            }
        }
        url = next.withCredentials(of: leftOrigin ? nil : configuration.url)
        return true
    }

    private func failure(_ fault: String) -> RealtimeError {
        RealtimeError(.redirect, "\(url.displayName) \(fault)")
    }
}
