import Wire

/// Limits a proxy's response to CONNECT. libcurl (7.88) reads it byte by byte until it ends, and
/// calls its progress callback for each; an endless body would block the loop.
struct TunnelAnswer {
    private var bytes = 0
    /// Far above any real response to CONNECT, whose body is only read for the status 407.
    private static let limit = 32 << 10

    /// Counts one call of libcurl's progress callback, before the tunnel is open.
    mutating func isTooLong() -> Bool {
        bytes += 1
        return bytes > TunnelAnswer.limit
    }

    static func error(on route: CurlRoute) -> RealtimeError {
        RealtimeError(
            .proxy,
            "the proxy \(route.proxyName ?? "") answered CONNECT with more than \(limit) bytes")
    }
}
