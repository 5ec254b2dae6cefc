import Wire

/// The tokens of a session (sse-poll-rest.md, B3 to B5). Each change makes a new generation, so
/// that a request that was refused with an older one is sent again without a refresh.
struct SpreadbotTokens: Sendable {
    private(set) var access: String
    private(set) var refresh: String
    private(set) var generation: UInt64 = 0
    /// One at a time: a refresh token that rotates must not be spent twice.
    private(set) var isRefreshing = false
    private var expiry: Instant?
    /// The server refused the refresh token: it is not shown again.
    private var isRefused = false
    private let hasServer: Bool

    /// What is left of an access token's life when it is refreshed before an attempt.
    private static let margin = Duration.seconds(30)

    init(_ configuration: SpreadbotConfiguration) {
        access = configuration.accessToken
        refresh = configuration.refreshToken
        hasServer = configuration.authURL != nil
    }

    var canRefresh: Bool { hasServer && !refresh.isEmpty && !isRefused }

    /// Whether an attempt with them would soon be refused.
    func expireSoon(_ now: Instant) -> Bool {
        expiry.map { $0 - now < SpreadbotTokens.margin } ?? false
    }

    /// - Returns: the refresh token to spend; nil while another refresh is under way.
    mutating func beginRefresh() -> String? {
        guard !isRefreshing else { return nil }
        isRefreshing = true
        return refresh
    }

    /// The application, or the server, gave new ones.
    mutating func adopt(
        access: String, refresh: String?, lifetime: Duration?, now: Instant
    ) {
        self.access = access
        if let refresh { self.refresh = refresh }
        expiry = lifetime.map { now + $0 }
        generation += 1
        isRefused = false
    }

    /// - Parameter refused: by the server, for good.
    mutating func endRefresh(refused: Bool) {
        isRefreshing = false
        isRefused = isRefused || refused
    }
}
