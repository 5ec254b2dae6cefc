package import Wire

/// The state of a Pusher connection. The numbers are those that PusherSwift uses.
package enum PusherState: Int32, Sendable {
    case connecting = 0
    case connected = 1
    case disconnecting = 2
    /// No attempt follows.
    case disconnected = 3
    /// The connection was lost, or could not be opened; another attempt follows.
    case reconnecting = 4

    /// The state in the words that all objects share.
    package var common: ConnectionState {
        switch self {
        case .connecting: .connecting
        case .connected: .open
        case .disconnecting: .closing
        case .disconnected: .closed
        case .reconnecting: .waiting
        }
    }

    /// The name in lower case, as PusherSwift prints it.
    package var name: String {
        switch self {
        case .connecting: "connecting"
        case .connected: "connected"
        case .disconnecting: "disconnecting"
        case .disconnected: "disconnected"
        case .reconnecting: "reconnecting"
        }
    }
}

/// The state of a channel that is registered.
package enum PusherChannelState: Int32, Sendable {
    /// Waits for a connection, or until an earlier subscription of the name, which was ended, has
    /// been answered.
    case idle = 0
    /// Waits for its authorization, or for the user to be signed in.
    case authorizing = 1
    /// The subscription was sent, and not answered yet.
    case sent = 2
    case subscribed = 3
    /// Refused. It is tried again when it is subscribed again, or with the next connection.
    case failed = 4
}

/// How a change of the state came about.
package struct PusherStateChange: Sendable {
    package let old: PusherState
    package let new: PusherState
    /// It is the first one: nothing was connected or connecting before.
    package var isFirst = false
    /// The code with which the server closed, or the code of the `pusher:error` that stands for it;
    /// nil if there is none.
    package var closeCode: Int?
    package var closeReason = ""
    /// Why the connection ended; nil if it did not, or as requested.
    package var error: RealtimeError?
    /// The delay until the next attempt; nil if there is none, or it waits for the network.
    package var retryIn: Duration?
    /// The number of failed attempts in a row.
    package var attempt = 0
}

/// How a socket, or the attempt to open it, ended.
package struct PusherSocketEnd: Sendable {
    /// The code of the server's close frame; nil if there was none.
    package var closeCode: UInt16?
    package var reason: String
    /// nil if the socket was closed properly.
    package var error: RealtimeError?
    /// The closing handshake was complete.
    package var wasClean: Bool

    package init(
        closeCode: UInt16? = nil, reason: String = "", error: RealtimeError? = nil,
        wasClean: Bool = false
    ) {
        self.closeCode = closeCode
        self.reason = reason
        self.error = error
        self.wasClean = wasClean
    }
}

/// Why a subscription, or a sign-in, failed.
package struct PusherSubscriptionFailure: Sendable {
    /// Has the endpoint's response, if there is one.
    package let error: RealtimeError
    /// The body of the response, or the message with which the server refused, without the
    /// signatures that it quotes; nil if there is none.
    package let body: [UInt8]?
    /// The status of the response, or the one in the server's message.
    package let status: Int?

    package init(_ error: RealtimeError, body: [UInt8]? = nil, status: Int? = nil) {
        self.error = error
        self.body = (body ?? error.response?.body).map { PusherRedaction.bytes(of: $0) }
        self.status = status ?? error.response?.status
    }
}

/// A request for authorizations, or for the authentication of the user. It is answered once, by
/// `PusherSession.authorized`, unless it is cancelled.
package struct PusherAuthorizationRequest: Sendable {
    package typealias Channel = (id: PusherSession.ChannelID, name: PusherChannelName)

    package enum Purpose: Sendable {
        /// At least one channel.
        case channels([Channel])
        case user
    }

    package let number: UInt64
    package let purpose: Purpose
    package let socketID: String

    package init(number: UInt64, purpose: Purpose, socketID: String) {
        self.number = number
        self.purpose = purpose
        self.socketID = socketID
    }
}

/// The answer to a request.
package enum PusherAuthorizationOutcome: Sendable {
    /// For each channel of the request, in its order.
    case channels([Result<PusherAuthorizationAnswer, RealtimeError>])
    case user(PusherUserAnswer)
    /// The whole request failed. If the error has a response of at least 500, or none and is not
    /// `.auth`, the request may be repeated (`auth_retries`).
    case failed(RealtimeError)
}

/// The members of a presence channel at one time.
package struct PusherMembers: Sendable {
    package private(set) var table: PusherPresenceTable
    /// nil unless the channel is subscribed.
    package let myID: String?

    package init(table: PusherPresenceTable, myID: String?) {
        self.table = table
        self.myID = myID
    }

    /// Those of a channel that is not subscribed.
    package static let none = PusherMembers(table: PusherPresenceTable(), myID: nil)

    package mutating func apply(_ change: PusherMembersChange) {
        switch change {
        case .all(let members): self = members
        case .set(let member): table.insert(member)
        case .removed(let id): _ = table.remove(id)
        }
    }
}

/// A single member does not cost a copy of the others.
package enum PusherMembersChange: Sendable {
    case all(PusherMembers)
    /// A member that is new, or that has new info.
    case set(PusherMember)
    /// - Parameter id: of a member that was there.
    case removed(_ id: String)
}

/// A call of `signIn` that the driver answers. It is dropped without an answer when the session is.
package protocol PusherSignInCall: AnyObject, Sendable {
    func answered(_ failure: PusherSubscriptionFailure?)
}

/// The driver's object for one registration of a channel.
package protocol PusherRegistration: AnyObject, Sendable {}

/// What to do with a message.
package enum PusherReception: Sendable {
    /// Nothing. Actions may have been queued.
    case handled
    /// Call the handlers: the global ones, and those of this channel if there is one.
    case deliver(PusherSession.ChannelID?, (any PusherRegistration)?)
}

extension PusherSession {
    /// Identifies one registration of a channel. The caller chooses it, never 0, and never twice.
    package typealias ChannelID = UInt64

    /// The parameters of an attempt to open a socket.
    package struct Attempt: Sendable {
        package let number: UInt64
        package let url: HTTPURL
        package let subprotocol: String?
    }

    package typealias Action = MachineAction<Command, Report>

    package enum Command: Sendable {
        /// Open a socket. The earlier one is closed by then.
        case connect(Attempt)
        case send(UInt64, [UInt8])
        /// Send a ping frame.
        case ping(UInt64)
        /// Send a close frame with code 1000, and report the end by `ended`.
        case close(UInt64)
        /// Close the socket at once, without a closing handshake. Its reports are ignored.
        case drop(UInt64)
        case authorize(PusherAuthorizationRequest)
        /// The answer would be ignored.
        case cancelAuthorization(UInt64)
    }

    package enum Report: Sendable {
        case stateChanged(PusherStateChange)
        /// A `pusher:error`, or a close code that ends the connection.
        case failed(PusherErrorMessage)
        /// An event for the global handlers, and for those of the channel if there is one.
        case event(PusherEvent, ChannelID?)
        case channel(ChannelID, ChannelReport)
        /// - Parameter userData: the JSON text that the server has confirmed.
        case signedIn(userID: String, userData: String)
        case signInFailed(PusherSubscriptionFailure)
        /// The result of these calls; nil for success. Comes after the report of the sign-in.
        case signInAnswered([any PusherSignInCall], PusherSubscriptionFailure?)
        /// The connection of a user that was signed in has ended.
        case signedOut
        /// An event that was sent to the user.
        case userEvent(PusherEvent)
        case watchlist(PusherWatchlistEvent)
        /// Only if `wantsLog` is set. Never contains a secret.
        case log(String)
    }

    package enum ChannelReport: Sendable {
        case state(PusherChannelState)
        case subscribed
        case failed(PusherSubscriptionFailure)
        /// The members have changed. Comes before the reports of single members.
        case members(PusherMembersChange)
        case memberAdded(PusherMember)
        case memberRemoved(PusherMember)
        case count(Int)
        /// - Parameter data: the payload as received; nil if there is none.
        case decryptionFailed(event: String, data: [UInt8]?)
        /// A client event was dropped, because too many of its channel wait.
        case triggerFailed(event: String, RealtimeError)
    }
}
