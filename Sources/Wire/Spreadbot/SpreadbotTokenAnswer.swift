/// The response of the token server (RFC 6749 §5).
package struct SpreadbotTokenAnswer: Equatable, Sendable {
    package let access: String
    /// nil if the refresh token that was sent stays valid.
    package let refresh: String?
    package let lifetime: Duration?

    /// The largest body, far above that of any token that fits into a header.
    package static let maximumBytes = 256 << 10

    /// Longer lifetimes count as this, because they would not fit a clock.
    private static let longest: Int64 = 10 * 365 * 86_400

    /// - Throws: `.auth` if the body is not a response with an access token.
    package init(parsing body: [UInt8]) throws(RealtimeError) {
        guard let value = try? JSONValue(parsing: body), let object = value.objectValue else {
            throw RealtimeError(.auth, "the token response is not a JSON object")
        }
        guard let access = object["access_token"]?.stringValue, !access.isEmpty else {
            throw RealtimeError(.auth, "the token response has no access_token")
        }
        if let type = object["token_type"], type.stringValue?.lowercased() != "bearer" {
            throw RealtimeError(.auth, "the token_type of the token response is not bearer")
        }
        do throws(RealtimeError) {
            try HeaderField.validate(
                name: "Authorization", value: HeaderField.bearerAuthorization(access))
        } catch {
            throw RealtimeError(.auth, "the access_token does not fit a header: \(error.message)")
        }
        self.access = access
        refresh = object["refresh_token"]?.stringValue.flatMap { $0.isEmpty ? nil : $0 }
        // RFC 6749 appendix A.17. A program could not pass one with a NUL back to us.
        if let refresh, refresh.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
            throw RealtimeError(.auth, "the refresh_token has control characters")
        }
        let seconds = object["expires_in"]?.doubleValue.flatMap {
            Int64(exactly: $0.rounded(.down))
        }
        lifetime = seconds.flatMap { $0 > 0 ? .seconds(min($0, Self.longest)) : nil }
    }

    /// The error code of a refusal, with its description if there is one (RFC 6749 §5.2).
    /// - Parameter secrets: which the server may quote.
    package static func errorCode(
        _ body: [UInt8], without secrets: SentSecrets = SentSecrets()
    ) -> String? {
        guard let object = (try? JSONValue(parsing: body))?.objectValue,
            let code = object["error"]?.stringValue
        else { return nil }
        let description = object["error_description"]?.stringValue.map {
            ": " + secrets.redacted($0).quoted(upTo: 100)
        }
        return secrets.redacted(code).quoted(upTo: 60) + (description ?? "")
    }
}
