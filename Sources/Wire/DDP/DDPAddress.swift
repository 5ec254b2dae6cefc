/// Where a Meteor server is reached: by WebSocket, and by SockJS if WebSockets are blocked.
///
/// A user gives one URL. Without a scheme, `ws` is meant. `http` and `https` stand for `ws` and
/// `wss`. A path that ends in `/websocket` is kept, otherwise that is appended. A query is kept.
package struct DDPAddress: Sendable, Equatable {
    package let webSocket: HTTPURL
    /// The base of SockJS: `/sockjs` beside the endpoint for WebSockets.
    package let sockJS: HTTPURL

    /// - Throws: `.unsupportedScheme`, or `.invalidURL` with advice what to change.
    package init(parsing text: String) throws(RealtimeError) {
        let given = try DDPAddress.url(text)
        let path = given.target.withoutQuery
        let query = Substring(given.target.utf8.dropFirst(path.utf8.count))
        var prefix = path.utf8[...]
        while prefix.last == UInt8(ascii: "/") { prefix.removeLast() }
        prefix.removeEnd("/websocket")
        let server = Substring(given.connectURL.utf8.dropFirst("http".utf8.count))
        webSocket = try HTTPURL(
            parsing: "ws\(server)\(Substring(prefix))/websocket\(query)", as: .webSocket
        ).withCredentials(of: given)
        // `/sockjs/websocket` is an endpoint for WebSockets inside the base.
        prefix.removeEnd("/sockjs")
        sockJS = try HTTPURL(
            parsing: "http\(server)\(Substring(prefix))/sockjs\(query)", as: .http
        ).withCredentials(of: given)
    }

    /// The URL of a SockJS session.
    /// - Parameter action: `xhr` or `xhr_send`.
    package func url(
        of session: SockJSSessionID, _ action: SockJSAction
    ) throws(RealtimeError) -> HTTPURL {
        let path = sockJS.target.withoutQuery
        let query = Substring(sockJS.target.utf8.dropFirst(path.utf8.count))
        let target = "\(path)/\(session.path)/\(action.name)\(query)"
        if let url = sockJS.withPlainTarget(target) { return url }
        return try HTTPURL(parsing: sockJS.connectURL + target, as: .http)
            .withCredentials(of: sockJS)
    }

    /// The key under which what belongs to this server is kept.
    package var key: String { webSocket.text.withoutQuery }

    /// The URL as it was given, so that errors show it.
    private static func url(_ text: String) throws(RealtimeError) -> HTTPURL {
        guard !text.isEmpty else { throw RealtimeError(.invalidURL, "The URL is empty") }
        let scheme = text.upTo(UInt8(ascii: ":"))
        guard text.utf8.dropFirst(scheme.utf8.count).starts(with: "://".utf8) else {
            return try HTTPURL(parsing: "ws://" + text, as: .webSocket)
        }
        for kind in [HTTPURL.Kind.http, .webSocket] {
            let (plain, secure) = kind.schemes
            if scheme.equalsIgnoringASCIICase(plain) || scheme.equalsIgnoringASCIICase(secure) {
                return try HTTPURL(parsing: text, as: kind)
            }
        }
        throw RealtimeError(
            .unsupportedScheme,
            "The URL \(HTTPURL.redacted(text)) has the scheme \(scheme.quoted(upTo: 30)); "
                + "http, https, ws or wss is expected")
    }
}

extension Substring.UTF8View {
    fileprivate mutating func removeEnd(_ end: StaticString) {
        let count = end.utf8CodeUnitCount
        let bytes = UnsafeBufferPointer(start: end.utf8Start, count: count)
        if suffix(count).elementsEqual(bytes) { removeLast(count) }
    }
}

/// A request of the SockJS transport `xhr`.
package enum SockJSAction: Sendable {
    /// Waits for one frame.
    case poll
    /// Sends messages.
    case send

    var name: String {
        switch self {
        case .poll: "xhr"
        case .send: "xhr_send"
        }
    }
}
