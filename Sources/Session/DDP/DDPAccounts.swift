import Wire

/// The user of a client, and the token that logs the user in on each new connection.
struct DDPAccounts: Sendable {
    /// nil: new connections do not log in.
    var token: DDPLoginToken?
    /// What is kept for the next run, as far as this client knows.
    var kept: DDPLoginToken?
    var userID: String?
    /// The calls that make the client say that it is logging in.
    var logins: Set<DDPSession.CallID> = []
    /// Logins of the application whose connection was lost between the result and the documents.
    /// They are completed with the login of the next connection.
    var interrupted: [DDPSession.CallID] = []
    /// When the login with the token is tried again, on this connection.
    var retryDue: Instant?

    var isLoggingIn: Bool { !logins.isEmpty }
}

extension DDPLoginToken {
    /// - Parameter result: what the server returns for a login.
    /// - Returns: nil if it contains no id or no token.
    init?(_ result: EJSON, wallClock: Int64) {
        guard case .object(let fields) = result, case .string(let id)? = fields["id"],
            case .string(let token)? = fields["token"]
        else { return nil }
        guard case .date(let expires)? = fields["tokenExpires"] else {
            self.init(userID: id, token: token, expires: nil)
            return
        }
        self.init(userID: id, token: token, expires: expires, life: expires &- wallClock)
    }
}

/// What a call is for.
enum DDPMethodPurpose: Sendable, Equatable {
    case application
    /// A login that the application asked for.
    case login
    /// The login with a token on a new connection.
    case resume(DDPLoginToken)
    case logout
    /// Asks for a new token, which keeps this client logged in when others are logged out.
    case newToken
}
