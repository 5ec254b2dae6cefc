package import Wire

/// The URL and headers of one attempt to connect: as configured at first, then as redirects change
/// them.
package struct WebSocketAttempt: Sendable {
    package private(set) var url: HTTPURL
    package private(set) var fields: [HeaderField]
    private var redirects = Redirects()

    package init(_ configuration: WebSocketConfiguration) {
        url = configuration.url
        fields = configuration.fields
    }

    /// Follows a redirect, see `Redirects.follow`.
    package mutating func follows(
        _ head: ResponseHead, _ configuration: WebSocketConfiguration
    ) throws(RealtimeError) -> Bool {
        try redirects.follow(
            head, &url, &fields, from: configuration.url, with: "the messages of the connection",
            configuration.redirects)
    }
}
