internal import Session
public import Wire

/// A failed attempt of an event source or a long poll, or the end of a stream.
public struct SourceError: Error, Sendable, CustomStringConvertible {
    public let error: RealtimeError
    /// The status of the response, or of a proxy that refused the tunnel; 0 without one.
    public let httpStatus: Int
    /// Whether the object is closed now.
    public let isFatal: Bool
    /// The time until the next attempt; nil if there is none, or if it waits for a network.
    public let retryIn: Duration?
    /// The number of that attempt since the last stable connection, or the last successful poll.
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
