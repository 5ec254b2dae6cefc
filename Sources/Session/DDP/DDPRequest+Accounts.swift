package import Wire

// The methods of Meteor's accounts (M15). Passwords are sent as digests.
extension DDPRequest {
    /// Logs in with a password.
    /// - Parameters:
    ///   - user: an email address if it contains an `@`, otherwise a user name.
    ///   - code: of the second factor; nil for none.
    /// - Throws: `.system` if libcrypto fails.
    package static func login(
        user: String, password: String, code: String? = nil
    ) throws(RealtimeError) -> DDPRequest {
        let isEmail = user.utf8.contains(UInt8(ascii: "@"))
        var selector = EJSONObject()
        selector[isEmail ? "email" : "username"] = .string(user)
        return try login(selector: selector, password: password, code: code)
    }

    /// - Parameter selector: with one member: `email`, `username` or `id`.
    package static func login(
        selector: EJSONObject, password: String, code: String? = nil
    ) throws(RealtimeError) -> DDPRequest {
        var login = EJSONObject()
        login["user"] = .object(selector)
        login["password"] = try DDPPassword.digest(password)
        if let code { login["code"] = .string(code) }
        return DDPRequest("login", [.object(login)])
    }

    /// Logs in with the token of an earlier login.
    package static func login(token: String) -> DDPRequest {
        var login = EJSONObject()
        login["resume"] = .string(token)
        return DDPRequest("login", [.object(login)])
    }

    /// Replaces the token of the user who is logged in.
    package static var newToken: DDPRequest { DDPRequest("getNewToken") }

    /// Creates a user, and logs in.
    /// - Parameter profile: null for none.
    package static func createUser(
        username: String?, email: String?, password: String, profile: EJSON = .null
    ) throws(RealtimeError) -> DDPRequest {
        var user = EJSONObject()
        if let username { user["username"] = .string(username) }
        if let email { user["email"] = .string(email) }
        user["password"] = try DDPPassword.digest(password)
        if profile != .null { user["profile"] = profile }
        return DDPRequest("createUser", [.object(user)])
    }

    /// - Parameter old: nil for a user who has no password yet.
    package static func changePassword(
        from old: String?, to new: String
    ) throws(RealtimeError) -> DDPRequest {
        var before = EJSON.null
        if let old { before = try DDPPassword.digest(old) }
        return DDPRequest("changePassword", [before, try DDPPassword.digest(new)])
    }

    /// Makes the server send an email with a token for `resetPassword`.
    package static func forgotPassword(email: String) -> DDPRequest {
        var options = EJSONObject()
        options["email"] = .string(email)
        return DDPRequest("forgotPassword", [.object(options)])
    }

    /// Sets a password with the token of an email, and logs in.
    package static func resetPassword(
        token: String, to new: String
    ) throws(RealtimeError) -> DDPRequest {
        DDPRequest("resetPassword", [.string(token), try DDPPassword.digest(new)])
    }

    /// Confirms an address with the token of an email, and logs in.
    package static func verifyEmail(token: String) -> DDPRequest {
        DDPRequest("verifyEmail", [.string(token)])
    }
}
