internal import Session
public import Wire

extension Pusher {
    /// A change of a connection's state.
    public struct StateChange: Sendable {
        public let old: ConnectionState
        public let new: ConnectionState
        /// The code with which the server closed the connection; nil if it did not.
        public let closeCode: Int?
        public let closeReason: String
        /// Why the connection ended; nil if it did not, or as requested.
        public let error: RealtimeError?
        /// The time until the next attempt; nil if there is none, or if it waits for a network.
        public let retryIn: Duration?
        /// The number of failed attempts in a row.
        public let attempt: Int

        init(_ change: PusherStateChange) {
            old = ConnectionState(change.old)
            new = ConnectionState(change.new)
            closeCode = change.closeCode
            closeReason = change.closeReason
            error = change.error
            retryIn = change.retryIn
            attempt = change.attempt
        }
    }

    /// A subscription or a sign-in that failed.
    public struct Failure: Error, Sendable, CustomStringConvertible {
        /// Has the endpoint's response, if there is one.
        public let error: RealtimeError
        /// The body of that response, or what the server sent with its refusal; nil for none.
        public let body: String?

        public var description: String { error.description }

        init(_ failure: PusherSubscriptionFailure) {
            error = failure.error
            body = failure.body.map { String(decoding: $0, as: UTF8.self) }
        }

        init(_ error: RealtimeError) {
            self.error = error
            body = nil
        }
    }
}

extension ConnectionState {
    init(_ state: PusherState) {
        self =
            switch state {
            case .connecting: .connecting
            case .connected: .connected
            case .disconnecting: .disconnecting
            case .disconnected: .disconnected
            case .reconnecting: .reconnecting
            }
    }
}

extension PusherError {
    init(_ error: PusherErrorMessage) {
        self.init(error.code, error.message, channelName: error.channel)
    }
}
