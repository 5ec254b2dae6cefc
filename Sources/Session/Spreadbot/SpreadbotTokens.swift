import Wire

/// The tokens of a session (sse-poll-rest.md, B3 to B5). Each change makes a new generation, so
/// that a request that was refused with an older one is sent again without a refresh.
struct SpreadbotTokens: Sendable {
    private(set) var access: String
    private(set) var refresh: String
    private(set) var generation: UInt64 = 0
    /// One at a time: a refresh token that rotates must not be spent twice.
    private(set) var isRefreshing = false
    /// The generation that was to be replaced.
    private var refreshing: UInt64 = 0
    private var expiry: Instant?
    /// What is left of its life when it is refreshed before an attempt.
    private var margin = Duration.zero
    /// Those that were refused last, by their generation.
    private var refusedGeneration: UInt64?
    /// The server refused the refresh token: it is not shown again.
    private var isRefused = false
    private let hasServer: Bool

    private static let longestMargin = Duration.seconds(30)

    init(_ configuration: SpreadbotConfiguration) {
        access = configuration.accessToken
        refresh = configuration.refreshToken
        hasServer = configuration.authURL != nil
    }

    var canRefresh: Bool { hasServer && !refresh.isEmpty && !isRefused }

    /// Whether an attempt with them would soon be refused.
    func expireSoon(_ now: Instant) -> Bool {
        expiry.map { $0 - now < margin } ?? false
    }

    /// The access token was refused.
    mutating func refuse() { refusedGeneration = generation }

    var areRefused: Bool { refusedGeneration == generation }

    /// They are known to be no good: they are refreshed before the next attempt.
    mutating func expire(_ now: Instant) {
        expiry = now
        margin = .nanoseconds(1)
    }

    /// - Returns: the refresh token to spend; nil while another refresh is under way.
    mutating func beginRefresh() -> String? {
        guard !isRefreshing else { return nil }
        isRefreshing = true
        refreshing = generation
        return refresh
    }

    /// The application, or the server, gave new ones.
    mutating func adopt(
        access: String, refresh: String?, lifetime: Duration?, now: Instant
    ) {
        self.access = access
        if let refresh { self.refresh = refresh }
        expiry = lifetime.map { now + $0 }
        // Less for a short life: it would be spent on refreshes alone.
        margin = min(SpreadbotTokens.longestMargin, (lifetime ?? .zero) / 2)
        generation += 1
        isRefused = false
    }

    /// - Parameter refused: by the server, for good.
    /// - Returns: false when others were adopted meanwhile, which this says nothing of.
    mutating func endRefresh(refused: Bool) -> Bool {
        isRefreshing = false
        guard refreshing == generation else { return false }
        isRefused = refused
        return true
    }
}
