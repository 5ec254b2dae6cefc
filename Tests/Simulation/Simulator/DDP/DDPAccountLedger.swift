import Session
import Wire

/// The user that is logged in, as the client reports it.
final class DDPAccountLedger {
    private let world: World
    private(set) var user: String?
    private var isLoggingIn = false
    /// The token that the host keeps.
    private(set) var stored: DDPLoginToken?
    /// The client has given its user up alone, and a resumed session may still have it.
    private(set) var isUnsure = false

    init(_ world: World, stored: DDPLoginToken?) {
        self.world = world
        self.stored = stored
        user = stored?.userID
    }

    /// The session at the server is new, and has no user.
    func sessionIsNew() { isUnsure = false }

    func reported(_ event: DDPAccountEvent) {
        switch event {
        case .user(let id):
            world.require(id != user, "the user \(id ?? "nobody") twice")
            world.count(id == nil ? "logged out" : "logged in")
            user = id
            if id != nil { isUnsure = false }
        case .loggingIn(let isNow):
            world.require(isNow != isLoggingIn, "logs in \(isNow) twice")
            isLoggingIn = isNow
        case .store(let token):
            world.require(token.userID == user, "keeps the token of another user")
            stored = token
        case .forget: stored = nil
        case .resumeFailed:
            world.count("logged out by the server")
            world.require(stored == nil, "keeps a token that is refused")
            isUnsure = true
        }
    }

    /// What a driver does that has a file for the token.
    func keep(_ event: DDPAccountEvent, _ session: inout DDPSession) {
        switch event {
        case .store(let token): session.tokenKept(token)
        case .forget: session.tokenKept(nil)
        case .user, .loggingIn, .resumeFailed: break
        }
    }

    /// After each turn.
    func check(_ session: DDPSession) {
        world.require(session.userID == user, "a user who was not reported")
        world.require(session.isLoggingIn == isLoggingIn, "a login that was not reported")
    }

    /// In the end.
    func verify(_ theirs: String?) {
        world.require(!isLoggingIn, "logs in for ever")
        world.require((stored == nil) == (user == nil), "a user without a token, or the reverse")
        guard !isUnsure else { return }
        world.require(
            user == theirs, "\(user ?? "nobody") is logged in, and \(theirs ?? "nobody") there")
        if user != nil { world.count("logged in at the end") }
    }
}
