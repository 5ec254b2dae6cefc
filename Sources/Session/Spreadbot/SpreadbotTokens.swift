import Wire

/// The tokens of a session (docs/spreadbot.md, B3 to B5). Each change makes a new generation, so
/// that a request refused with an older one is repeated without a refresh.
struct SpreadbotTokens: Sendable {
    private(set) var access: String
    private(set) var refresh: String
    private(set) var generation: UInt64 = 0
    /// The tokens being refreshed. One refresh at a time, because a rotating token can be used only
    /// once.
    private var refreshing: (generation: UInt64, refresh: String)?
    private var expiry: Instant?
    /// The remaining lifetime at which the token is refreshed before an attempt.
    private var margin = Duration.zero
    /// The generation of the tokens that were refused last.
    private var refusedGeneration: UInt64?
    /// The server refused the refresh token, which is not sent again.
    private var isRefused = false
    private let hasServer: Bool

    private static let longestMargin = Duration.seconds(30)

    init(_ configuration: SpreadbotConfiguration) {
        access = configuration.accessToken
        refresh = configuration.refreshToken
        hasServer = configuration.authURL != nil
    }

    /// The tokens that the result of a refresh concerns.
    enum Subject {
        /// The current tokens.
        case tokens
        /// Only the refresh token: the application has set another access token.
        case refreshToken
        /// None: the application has set other tokens.
        case none
    }

    var canRefresh: Bool { hasServer && !refresh.isEmpty && !isRefused }

    /// Whether the access token expires so soon that an attempt with it might be refused.
    func expireSoon(_ now: Instant) -> Bool {
        expiry.map { $0 - now < margin } ?? false
    }

    /// The access token was refused.
    mutating func refuse() { refusedGeneration = generation }

    var areRefused: Bool { refusedGeneration == generation }

    /// Marks the tokens as expired, so that they are refreshed before the next attempt.
    mutating func expire(_ now: Instant) {
        expiry = now
        margin = .nanoseconds(1)
    }

    /// Whether these tokens are being refreshed.
    func isRefreshing(access: String, refresh: String) -> Bool {
        refreshing?.generation == generation && access.hasSameBytes(as: self.access)
            && refresh.hasSameBytes(as: self.refresh)
    }

    /// - Returns: the refresh token to use; nil during another refresh.
    mutating func beginRefresh() -> String? {
        guard refreshing == nil else { return nil }
        refreshing = (generation, refresh)
        return refresh
    }

    /// Cancels a refresh that was not begun.
    mutating func withdrawRefresh() { refreshing = nil }

    /// Sets new tokens from the application or the server.
    mutating func adopt(
        access: String, refresh: String?, lifetime: Duration?, now: Instant
    ) {
        self.access = access
        if let refresh { self.refresh = refresh }
        expiry = lifetime.map { now + $0 }
        // Less for a short lifetime, which would otherwise be spent on refreshes.
        margin = min(SpreadbotTokens.longestMargin, (lifetime ?? .zero) / 2)
        generation += 1
        isRefused = false
    }

    /// The server replaced the refresh token.
    mutating func adopt(refresh: String) { self.refresh = refresh }

    /// - Parameter refused: whether the server refused for good.
    mutating func endRefresh(refused: Bool) -> Subject {
        guard let (old, spent) = refreshing else { return .none }
        refreshing = nil
        guard spent.hasSameBytes(as: refresh) else { return .none }
        isRefused = refused
        return old == generation || areRefused ? .tokens : .refreshToken
    }
}
