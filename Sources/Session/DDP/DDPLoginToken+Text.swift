import Wire

// The form in which a token is kept between runs: an EJSON object, without line breaks.
extension DDPLoginToken {
    package var text: String {
        var fields = EJSONObject()
        fields["userId"] = .string(userID)
        fields["token"] = .string(token)
        if let expires { fields["expires"] = .date(expires) }
        fields["life"] = .number(Double(life))
        return EJSON.object(fields).text
    }

    /// - Returns: nil for a text that `text` has not written.
    package init?(text: String) {
        guard case .object(let fields)? = try? EJSON(parsing: text),
            case .string(let userID)? = fields["userId"],
            case .string(let token)? = fields["token"], case .number(let life)? = fields["life"]
        else { return nil }
        var expires: Int64?
        if case .date(let time)? = fields["expires"] { expires = time }
        self.init(
            userID: userID, token: token, expires: expires,
            life: Int64(exactly: life.rounded()) ?? DDPLoginToken.defaultLife)
    }
}
