/// What an HTTP server answered, or a proxy in its place.
public final class HTTPResponse: Sendable, Equatable {
    public struct Header: Sendable, Equatable {
        public let name: String
        /// Bytes that are not UTF-8 are read as ISO-8859-1.
        public var value: String { content.text }
        package let content: FieldText
    }

    public let status: Int
    /// As the server put it, "" without; bytes that are not UTF-8 are read as ISO-8859-1.
    public var reason: String { reasonText.text }
    package let reasonText: FieldText
    /// In the order of the wire.
    public let headers: [Header]
    /// Its first bytes; how many are kept says whoever made it.
    public let body: [UInt8]
    /// Host and port of the proxy whose word this is; nil for the server's.
    public let proxy: String?

    package init(_ head: ResponseHead, body: [UInt8]) {
        status = head.status
        reasonText = head.reasonText
        headers = head.fields.map { Header(name: $0.name, content: $0.content) }
        self.body = body
        proxy = head.proxy
    }

    /// The first value of a header, whose name may be in any ASCII case.
    public func header(_ name: String) -> String? {
        headers.first { $0.name.equalsIgnoringASCIICase(name) }?.value
    }

    public static func == (a: HTTPResponse, b: HTTPResponse) -> Bool {
        a.status == b.status && a.reasonText == b.reasonText && a.headers == b.headers
            && a.body == b.body && a.proxy == b.proxy
    }
}
