package import Wire

/// Where one attempt to connect goes and what its request says: as configured at first, and then as
/// redirects change it.
package struct WebSocketAttempt: Sendable {
    package private(set) var url: HTTPURL
    package private(set) var fields: [HeaderField]
    private var redirects = Redirects()

    package init(_ configuration: WebSocketConfiguration) {
        url = configuration.url
        fields = configuration.fields
    }

    /// As `Redirects.follow`.
    package mutating func follows(
        _ head: ResponseHead, _ configuration: WebSocketConfiguration
    ) throws(RealtimeError) -> Bool {
        try redirects.follow(
            head, &url, &fields, from: configuration.url, configuration.redirects)
    }
}
