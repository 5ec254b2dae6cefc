package import Wire

/// What has the headers of a request among its options: an object's configuration.
package protocol RequestHeaders {
    var headers: HeaderFields { get set }

    /// Whether a header may be set.
    static func check(_ name: String, _ value: String) throws(RealtimeError)
}

extension RequestHeaders {
    /// Adds a header; one of that name that is there stays.
    package mutating func addHeader(name: String, value: String) throws(RealtimeError) {
        try Self.check(name, value)
        headers.append(HeaderField(name: name, value: value))
    }

    /// Sets a header in the place of all of its name.
    package mutating func setHeader(name: String, value: String) throws(RealtimeError) {
        try Self.check(name, value)
        headers.set(name, value)
    }

    package mutating func clearHeaders() { headers = HeaderFields() }
}
