import Wire

/// The tokens of a session (docs/spreadbot.md, B3 to B5). Each change makes a new generation, so
/// that a request that was refused with an older one is sent again without a refresh.
struct SpreadbotTokens: Sendable {
    private(set) var access: String
    private(set) var refresh: String
    private(set) var generation: UInt64 = 0
    /// What is being refreshed: one at a time, as a token that rotates must not be spent twice.
    private var refreshing: (generation: UInt64, refresh: String)?
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

    /// What the end of a refresh says something of.
    enum Subject {
        /// Of the tokens there are.
        case tokens
        /// Of the refresh token alone: the application has given another access token.
        case refreshToken
        /// Of nothing any more: the application has given others.
        case none
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

    /// Whether these tokens are being refreshed.
    func isRefreshing(access: String, refresh: String) -> Bool {
        refreshing?.generation == generation && HeaderField.haveSameBytes(access, self.access)
            && HeaderField.haveSameBytes(refresh, self.refresh)
    }

    /// - Returns: the refresh token to spend; nil while another refresh is under way.
    mutating func beginRefresh() -> String? {
        guard refreshing == nil else { return nil }
        refreshing = (generation, refresh)
        return refresh
    }

    /// It was not begun after all.
    mutating func withdrawRefresh() { refreshing = nil }

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

    /// The server gave another refresh token for the one there is.
    mutating func adopt(refresh: String) { self.refresh = refresh }

    /// - Parameter refused: by the server, for good.
    mutating func endRefresh(refused: Bool) -> Subject {
        guard let (old, spent) = refreshing else { return .none }
        refreshing = nil
        guard HeaderField.haveSameBytes(spent, refresh) else { return .none }
        isRefused = refused
        return old == generation || areRefused ? .tokens : .refreshToken
    }
}
