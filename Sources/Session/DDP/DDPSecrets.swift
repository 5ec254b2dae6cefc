import Wire

extension SentSecrets {
    /// The methods of Meteor's accounts whose parameters contain credentials.
    private static let accountMethods = [
        "changePassword", "createUser", "enrollAccount", "login", "resetPassword", "verifyEmail",
    ]
    /// Their parameters that are tokens.
    private static let tokenMethods = ["enrollAccount", "resetPassword", "verifyEmail"]
    /// The members of their parameters that are credentials, also of other login methods.
    private static let members = [
        "accessToken", "code", "credentialSecret", "credentialToken", "digest", "idToken",
        "password", "resume", "secret", "token",
    ]

    /// Adds the credentials among the parameters of a call.
    /// - Parameter isLogin: the application says that the method logs a user in.
    mutating func add(_ request: DDPRequest, isLogin: Bool) {
        func isAmong(_ names: [String]) -> Bool {
            names.contains { $0.hasSameBytes(as: request.name) }
        }
        guard isLogin || isAmong(SentSecrets.accountMethods) else { return }
        for parameter in request.params {
            if case .string(let token) = parameter, isAmong(SentSecrets.tokenMethods) { add(token) }
            add(membersOf: parameter, depth: 0)
        }
    }

    private mutating func add(membersOf value: EJSON, depth: Int) {
        guard depth < 8, case .object(let fields) = value else { return }
        for name in SentSecrets.members {
            if case .string(let secret)? = fields[name] { add(secret) }
        }
        for field in fields.fields { add(membersOf: field.value, depth: depth + 1) }
    }
}

extension DDPSocketEnd {
    /// The same without the credentials that the server quotes.
    func redacted(by secrets: SentSecrets) -> DDPSocketEnd {
        DDPSocketEnd(
            closeCode: closeCode, reason: secrets.redacted(reason),
            error: error.map { secrets.redacted($0) })
    }
}
