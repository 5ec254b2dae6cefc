/// The response of an HTTP server, or of a proxy that responded instead.
public final class HTTPResponse: Sendable, Equatable {
    public struct Header: Sendable, Equatable {
        public let name: String
        /// Bytes that are not UTF-8 are decoded as ISO-8859-1.
        public var value: String { content.text }
        package let content: FieldText
    }

    public let status: Int
    /// The reason phrase, "" if there is none. Bytes that are not UTF-8 are decoded as ISO-8859-1.
    public var reason: String { reasonText.text }
    package let reasonText: FieldText
    /// In the order in which the server sent them.
    public let headers: [Header]
    /// The beginning of the body. The source of the response says how much is kept.
    public let body: [UInt8]
    /// Host and port of the proxy that responded; nil if the server did.
    public let proxy: String?

    package init(_ head: ResponseHead, body: [UInt8]) {
        status = head.status
        reasonText = head.reasonText
        headers = head.fields.map { Header(name: $0.name, content: $0.content) }
        self.body = body
        proxy = head.proxy
    }

    /// The same without the credentials that it quotes.
    init(_ other: HTTPResponse, redacting secrets: SentSecrets) {
        status = other.status
        reasonText = secrets.redacted(other.reasonText)
        headers = other.headers.map {
            Header(name: $0.name, content: secrets.redacted($0.content))
        }
        body = secrets.redacted(other.body)
        proxy = other.proxy
    }

    /// The first value of a header. The name matches in any ASCII case.
    public func header(_ name: String) -> String? {
        headers.first { $0.name.equalsIgnoringASCIICase(name) }?.value
    }

    public static func == (a: HTTPResponse, b: HTTPResponse) -> Bool {
        a.status == b.status && a.reasonText == b.reasonText && a.headers == b.headers
            && a.body == b.body && a.proxy == b.proxy
    }
}
