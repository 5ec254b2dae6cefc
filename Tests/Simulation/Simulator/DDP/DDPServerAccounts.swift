import Session
import Wire

// Users at the server, and their tokens.
extension DDPServer {
    static let accountMethods: Set<String> = [
        "login", "logout", "getNewToken", "removeOtherTokens",
    ]

    /// The methods that log in and out.
    /// - Returns: nil if this is another method.
    func performAccounts(
        _ name: String, _ params: [JSONValue], _ session: DDPServerSession
    ) throws(DDPServerError) -> String? {
        switch name {
        case "login":
            if !isPeaceful, random.chance(plan.limited) {
                world.count("too many logins")
                throw DDPServerError(
                    code: "too-many-requests",
                    details: #"{"timeToReset":\#(random.pick([0, 900, 20_000]))}"#)
            }
            return try logIn(params.first ?? .null, session)
        case "logout":
            if let token = session.token { tokens[token] = nil }
            session.token = nil
            setUser(nil, session)
            return "null"
        case "getNewToken":
            guard let user = session.user else { throw DDPServerError(code: "403") }
            return newToken(user, session)
        case "removeOtherTokens":
            guard let user = session.user else { throw DDPServerError(code: "403") }
            for (token, owner) in tokens where owner == user && token != session.token {
                tokens[token] = nil
            }
            return "null"
        default: return nil
        }
    }

    private func logIn(
        _ params: JSONValue, _ session: DDPServerSession
    ) throws(DDPServerError) -> String {
        if let token = params["resume"]?.stringValue {
            guard let user = tokens[token] else {
                world.count("token refused")
                throw DDPServerError(code: "403")
            }
            session.token = token
            setUser(user, session)
            return result(user, token)
        }
        guard let user = params["user"]?["username"]?.stringValue, user != "nobody" else {
            throw DDPServerError(code: "403")
        }
        defer { setUser(user, session) }
        return newToken(user, session)
    }

    private func newToken(_ user: String, _ session: DDPServerSession) -> String {
        lastValue += 1
        let token = "t\(lastValue)"
        tokens[token] = user
        session.token = token
        return result(user, token)
    }

    private func result(_ user: String, _ token: String) -> String {
        let expires = wallClock() + Int64(plan.tokenLife / .milliseconds(1))
        return #"{"id":"\#(user)","token":"\#(token)","tokenExpires":{"$date":\#(expires)}}"#
    }

    /// Runs all publications again for another user, from Meteor 3.5 on for each login. The user's
    /// own document goes meanwhile, and may come later.
    private func setUser(_ user: String?, _ session: DDPServerSession) {
        guard session.user != user || plan.resumes else { return }
        session.user = user
        session.isUserShown = false
        world.after(delay(plan.slowestRefresh)) { [self] in
            session.isUserShown = true
            refresh(session)
        }
        refresh(session)
        let ready = session.subscriptions.filter { $0.value.isReady }.keys.sorted()
        guard !ready.isEmpty else { return }
        let ids = ready.map { "\"\($0)\"" }.joined(separator: ",")
        session.send(#"{"msg":"ready","subs":[\#(ids)]}"#)
    }
}
