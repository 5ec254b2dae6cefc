import Wire

/// What follows the end of a connection, by its close code.
enum PusherClosing: Equatable {
    /// The connection is not attempted again.
    case fatal
    /// The same again with TLS, at once.
    case upgrade
    /// At once.
    case atOnce
    /// After the delay of the backoff, and at least this time.
    case backOff(atLeast: Duration)

    /// - Parameters:
    ///   - code: the close code, or that of a `pusher:error` that stands for it; nil if the
    ///     connection ended without one.
    ///   - mayUpgrade: TLS was not used, and may be tried.
    init(code: Int?, mayUpgrade: Bool) {
        switch code {
        case 4000? where mayUpgrade: self = .upgrade
        case (4000...4099)?: self = .fatal
        case (4100...4199)?: self = .backOff(atLeast: .seconds(1))
        case (4200...4299)?: self = .atOnce
        default: self = .backOff(atLeast: .zero)
        }
    }

    /// Whether the server has refused the client, which is reported if no attempt follows.
    var isRefusal: Bool { self == .fatal || self == .upgrade }

    /// Codes of a `pusher:error` that stand for a close code.
    static let codesOfErrors = 4000...4299
    /// Codes with which servers ask for a new connection.
    static let renewals = 4200...4299
    /// A connection that ended within this time after it opened, twice in a row, is not renewed at
    /// once.
    static let shortLife = Duration.seconds(5)
    /// After a connection that lasted for less than this, the next attempt waits as long.
    static let leastLife = Duration.seconds(1)
    /// How long before the end of a connection an error may be its cause.
    static let errorMemory = Duration.seconds(1)
}
