package import Wire

/// Origins that the program trusts with what is meant for another one.
package struct TrustedOrigins: Sendable, Equatable {
    private var origins: [HTTPURL] = []
    private var hasAll = false

    package init() {}

    package var isEmpty: Bool { origins.isEmpty && !hasAll }

    /// - Parameters:
    ///   - origin: a URL with only scheme, host and port, or "*" for all.
    ///   - mayBeWebSocket: whether the scheme may be ws or wss, too.
    package mutating func add(
        _ origin: String, mayBeWebSocket: Bool = false
    ) throws(RealtimeError) {
        if origin == "*" { return hasAll = true }
        let isWebSocket = mayBeWebSocket && origin.prefix(2).equalsIgnoringASCIICase("ws")
        let url = try HTTPURL(parsing: origin, as: isWebSocket ? .webSocket : .http)
        guard url.target == "/", url.basicAuthorization == nil,
            !origin.utf8.contains(UInt8(ascii: "#"))
        else {
            throw RealtimeError(
                .invalidURL,
                "\(HTTPURL.redacted(origin)) is not an origin: a scheme, a host and maybe a port"
                    + " are expected, such as https://api.example.org")
        }
        origins.append(url)
    }

    package func contains(_ url: HTTPURL) -> Bool {
        hasAll || origins.contains { $0.hasSameOrigin(as: url) }
    }
}
