package import Documents
package import Wire

/// The state of a connection to a Meteor server.
package enum DDPStatus: Int32, Sendable {
    /// No connection is wanted, or an attempt waits for the network or for the foreground.
    case offline = 0
    case connecting = 1
    /// The server has confirmed the connection.
    case connected = 2
    /// Another attempt is due later.
    case waiting = 3
    /// Gave up for good.
    case failed = 4
}

/// How the status changed.
package struct DDPStatusChange: Sendable, Equatable {
    package let status: DDPStatus
    /// Failed attempts in a row.
    package var retryCount = 0
    /// The delay until the next attempt; nil unless `waiting`.
    package var retryIn: Duration?
    /// Why the client failed; empty otherwise.
    package var reason = ""
    /// What ended the connection; nil if nothing did, or it ended as requested.
    package var error: RealtimeError?
}

/// How a method is called.
package struct DDPCallOptions: Sendable {
    /// Earlier calls are finished before it is sent, and it is finished before later ones are.
    package var isWait = false
    /// If the connection is lost before its result, the call fails: it is not sent again, because
    /// it could run twice on the server.
    package var noRetry = false
    /// An error of the stub goes to the caller, and nothing is sent.
    package var throwsStubErrors = false
    /// The time limit for the whole call; zero without limit.
    package var timeout = Duration.zero

    package init() {}
}

/// A call: its method with the parameters.
package struct DDPRequest: Sendable {
    package var name: String
    package var params: [EJSON]
    package var options: DDPCallOptions

    package init(_ name: String, _ params: [EJSON] = [], _ options: DDPCallOptions = .init()) {
        self.name = name
        self.params = params
        self.options = options
    }
}

/// How a stub ended.
package typealias DDPStubOutcome = Result<EJSON, DDPError>

/// A call that was made.
package struct DDPCall: Sendable, Equatable {
    package let id: DDPSession.CallID
    /// What the stub returned; null without a stub, and if it failed.
    package let value: EJSON

    package init(id: DDPSession.CallID, value: EJSON) {
        self.id = id
        self.value = value
    }
}

/// The account that the connection is logged in to.
package enum DDPAccountEvent: Sendable, Equatable {
    /// The user has changed.
    /// - Parameter id: nil if nobody is logged in any more.
    case user(id: String?)
    /// Whether a login is in progress.
    case loggingIn(Bool)
    /// Keep this token, so that the user can be logged in again after a restart.
    case store(DDPLoginToken)
    /// Forget the token that was kept.
    case forget
    /// The server refused to log the user in again.
    case resumeFailed(DDPError)
}

/// Logs a user in without a password.
package struct DDPLoginToken: Sendable, Equatable {
    package let userID: String
    package let token: String
    /// Milliseconds since 1970; nil if the server did not say.
    package let expires: Int64?
    /// How long it was valid when it was received, in milliseconds.
    package let life: Int64

    /// What servers choose if they say nothing: 90 days.
    package static let defaultLife: Int64 = 90 * 86_400_000

    package init(userID: String, token: String, expires: Int64?, life: Int64 = defaultLife) {
        self.userID = userID
        self.token = token
        self.expires = expires
        self.life = life
    }

    /// Compares texts byte for byte.
    package static func == (a: DDPLoginToken, b: DDPLoginToken) -> Bool {
        a.userID.hasSameBytes(as: b.userID) && a.token.hasSameBytes(as: b.token)
            && a.expires == b.expires && a.life == b.life
    }

    /// Whether too little of its life is left: a tenth, or an hour if that is less.
    package func expiresSoon(wallClock: Int64) -> Bool {
        guard let expires else { return false }
        return expires &- wallClock < min(max(0, life) / 10, 3_600_000)
    }
}

extension DDPSession {
    /// Numbers the calls of a client, from 1. Its text is the id on the wire.
    package typealias CallID = UInt64
    /// One use of a subscription: what `subscribe` returned.
    package typealias SubscriptionHandle = UInt64
    package typealias LoaderID = UInt64

    package typealias Action = MachineAction<Command, Report>

    package enum Command: Sendable {
        /// Open a socket. The earlier one is dropped by then.
        case connect(UInt64)
        /// Send a text on this socket.
        case send(UInt64, [UInt8])
        /// Close the socket properly. Its reports are ignored.
        case close(UInt64)
        /// Close the socket at once. Its reports are ignored.
        case drop(UInt64)
        /// Write `keptDocuments()` for the next run, and pass on how long that took.
        case keep
    }

    package enum Report: Sendable {
        case status(DDPStatusChange)
        /// Documents have changed.
        case changed(Notification)
        /// A message about a document of a collection that is a stream.
        case streamed(String, ListChange)
        /// The result of a call has arrived; the documents that it wrote may follow.
        case result(CallID, Result<EJSON, DDPError>)
        /// The call is done, and the documents that it wrote are there.
        case completed(CallID, Result<EJSON, DDPError>)
        /// The initial documents are there.
        case ready(SubscriptionHandle)
        /// The server has ended the subscription.
        case stopped(SubscriptionHandle, DDPError?)
        /// All subscriptions of the loader are ready, or have failed.
        /// - Parameter error: the first one.
        case loaded(LoaderID, DDPError?)
        case account(DDPAccountEvent)
        /// The documents of an earlier run are replaced by those of the server.
        case current
        /// The server did not understand a message.
        case refused(reason: String, offending: [UInt8]?)
        /// Only if `wantsLog` is set.
        case log(String)
    }
}
