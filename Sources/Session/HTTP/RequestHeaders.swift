package import Wire

/// A configuration with request headers.
package protocol RequestHeaders {
    var headers: HeaderFields { get set }

    /// Whether a header may be set.
    static func check(_ name: String, _ value: String) throws(RealtimeError)
}

extension RequestHeaders {
    /// Adds a header. Others with the same name are kept; Host can be set only once.
    package mutating func addHeader(name: String, value: String) throws(RealtimeError) {
        try Self.check(name, value)
        try HeaderField.validate(adding: name, to: headers)
        headers.append(HeaderField(name: name, value: value))
    }

    /// Sets a header, which replaces all with the same name. nil removes them.
    package mutating func setHeader(name: String, value: String?) throws(RealtimeError) {
        try Self.check(name, value ?? "")
        headers.set(name, value)
    }

    /// Sets a basic Authorization header (RFC 7617); nil removes the header.
    package mutating func setBasicAuthorization(
        _ credentials: (user: String, password: String)?
    ) throws(RealtimeError) {
        let value = try credentials.map { given throws(RealtimeError) in
            try HeaderField.basicAuthorization(user: given.user, password: given.password)
        }
        try setHeader(name: "Authorization", value: value)
    }

    /// Sets an Authorization header with a bearer token (RFC 6750); nil removes the header.
    package mutating func setBearerToken(_ token: String?) throws(RealtimeError) {
        let value = try token.map { given throws(RealtimeError) in
            try HeaderField.bearerAuthorization(given)
        }
        try setHeader(name: "Authorization", value: value)
    }

    package mutating func clearHeaders() { headers = HeaderFields() }
}
