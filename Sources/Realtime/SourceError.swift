internal import Session
public import Wire

/// An attempt of an event source or a long poll that failed, or a stream that ended.
public struct SourceError: Error, Sendable, CustomStringConvertible {
    public let error: RealtimeError
    /// The answer's, or that of a proxy that refused the tunnel; 0 without one.
    public let httpStatus: Int
    /// Whether it is closed now.
    public let isFatal: Bool
    /// The time until the next attempt; nil when there is none, or it waits for a network.
    public let retryIn: Duration?
    /// The number of that attempt since the last connection that was stable, or the last poll that
    /// succeeded.
    public let attempt: Int

    public var description: String { error.description }

    init(_ failure: HTTPSourceFailure) {
        error = failure.error
        httpStatus = failure.status
        isFatal = failure.isFatal
        retryIn = failure.retryIn
        attempt = failure.attempt
    }
}
