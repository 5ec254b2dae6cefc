package import Wire

/// The options of a DDP client.
package struct DDPConfiguration: Sendable {
    /// The server's host and port, for messages.
    package var server = "the server"
    /// The protocol versions that are offered, the preferred one first; without any, 1, pre2 and
    /// pre1.
    /// - Option: versions, list INVALID_ARGUMENT for one that does not exist or is offered twice
    package var versions: [String] = []

    /// The time limit for an attempt, from its start until the server confirms the connection.
    /// - Option: connect_timeout, limit
    package var connectTimeout = Duration.seconds(10)
    /// Whether a connection that is lost, or cannot be opened, is attempted again. Otherwise the
    /// client fails, and with it all calls that wait.
    /// - Option: auto_reconnect, flag
    package var mayReconnect = true
    /// The delays between attempts, instead of 10 ms twice, and then 1 s times a power of 2.2, up
    /// to 5 minutes, within a quarter more or less at random. They begin anew after a connection
    /// that lasted for a second, or for the backoff's stable time. The backoff's limit of attempts
    /// is not used.
    /// - Option: backoff, backoff
    package var backoff: BackoffConfiguration?

    /// The delays between attempts (M4).
    package var delays: BackoffConfiguration {
        guard var delays = backoff else {
            var delays = BackoffConfiguration(
                quick: 2, delay: .milliseconds(10), initial: .seconds(1), factor: 2.2,
                maximum: .seconds(300))
            // A server that confirms connections and ends them at once must not be asked all the
            // time.
            delays.stableTime = .seconds(1)
            return delays
        }
        delays.attemptLimit = 0
        return delays
    }

    /// How long the connection may be silent before the server is asked for a sign of life.
    /// - Option: heartbeat_interval, limit
    package var heartbeatInterval = Duration.milliseconds(17_500)
    /// How long the server may stay silent after it was asked for a sign of life. Then the
    /// connection is given up, unless some of the bytes that were sent before have arrived since:
    /// over a slow link the question comes after them.
    /// - Option: heartbeat_timeout, limit
    package var heartbeatTimeout = Duration.seconds(15)

    /// Documents that arrive are applied together, this long after the last of them. Zero applies
    /// each at once.
    /// - Option: buffer_interval, delay
    package var bufferInterval = Duration.milliseconds(5)
    /// The longest time that a document waits while others arrive.
    /// - Option: buffer_max_age, delay
    package var bufferMaxAge = Duration.milliseconds(500)
    /// How long documents are held back until subscriptions are ready again, or a call that others
    /// wait for is done.
    /// - Option: quiescence_limit, limit
    package var quiescenceLimit = Duration.seconds(30)
    /// How often a call is sent again whose connections are lost before its result. Then it fails
    /// as one with `no_retry` does at once, because it may have run on the server each time.
    /// - Option: max_call_repeats, count 0..., unlimited
    package var maximumCallRepeats = 0
    /// Methods whose calls are never sent again, as with `no_retry`.
    /// - Option: no_retry_methods, list INVALID_ARGUMENT for an empty name
    package var noRetryMethods: [String] = []
    /// Whether writes to collections call the server's methods `insertAsync`, `updateAsync` and
    /// `removeAsync`, which exist from Meteor 3.0 on, and not `insert`, `update` and `remove`. Both
    /// do the same. A collection of Meteor 3.0.0 to 3.1.0 that has allow rules only for the former
    /// refuses the latter.
    /// - Option: async_methods, flag
    package var usesAsyncMethods = false
    /// Whether the end of a subscription is also reported when the program itself has stopped or
    /// released it: without an error, as Meteor's own client does.
    /// - Option: report_own_stops, flag
    package var reportsOwnStops = false
    /// How long a subscription that nobody uses is kept.
    /// - Option: unused_subscription_time, delay
    package var unusedSubscriptionTime = Duration.seconds(180)
    /// How long the connection is kept when the application moves to the background.
    /// - Option: background_grace, delay
    package var backgroundGrace = Duration.seconds(180)

    /// So many changes are applied without waiting for more, in steps of a `StepBudget`: a call
    /// that needs the documents applies all of them at once, and must not wait long.
    package static let unappliedLimit = 65_536
    /// How many ends of subscriptions that the server has not confirmed are remembered, to be sent
    /// again if their connection is lost.
    package static let unansweredLimit = 65_536
    /// How many documents each message allows to be put in order again at once.
    package static let placingCredit = 1_000
    /// The most that messages may have allowed.
    package static let placingCreditLimit = 4_096_000
    /// How many stubs may run inside each other.
    package static let deepestStub = 50
    /// How many bytes of messages may be held back before they are applied early.
    package static let heldBytesLimit = 256 << 20
    /// How long the server may take to answer that a subscription has ended, before it is asked
    /// again on a session that it has resumed.
    package static let answerTimeout = Duration.seconds(15)
    /// How long the server may take to end a connection after `disconnect`.
    package static let closeTimeout = Duration.seconds(5)

    package init() {}

    package mutating func addNoRetryMethod(_ name: String) throws(RealtimeError) {
        guard !name.isEmpty else {
            throw RealtimeError(.invalidArgument, "the name of a method must not be empty")
        }
        noRetryMethods.append(name)
    }

    /// The server's method for a write to a collection.
    /// - Parameter action: `insert`, `update` or `remove`.
    func writeMethod(_ action: String, _ collection: String) -> String {
        "/\(collection)/\(action)" + (usesAsyncMethods ? "Async" : "")
    }

    package mutating func addVersion(_ version: String) throws(RealtimeError) {
        guard DDPNegotiation.known.contains(version) else {
            throw RealtimeError(
                .invalidArgument,
                "version \(version.quoted()) of DDP does not exist; there are 1, pre2 and pre1")
        }
        guard !versions.contains(version) else {
            throw RealtimeError(.invalidArgument, "version \(version) is offered twice")
        }
        versions.append(version)
    }
}
