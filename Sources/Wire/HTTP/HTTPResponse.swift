/// What an HTTP server answered.
public final class HTTPResponse: Sendable, Equatable {
    public struct Header: Sendable, Equatable {
        public let name: String
        public let value: String
    }

    public let status: Int
    /// As the server put it, "" without.
    public let reason: String
    /// In the order of the wire.
    public let headers: [Header]
    /// Its first bytes; how many are kept says whoever made it.
    public let body: [UInt8]

    package init(_ head: ResponseHead, body: [UInt8]) {
        status = head.status
        reason = head.reason
        headers = head.fields.map { Header(name: $0.name, value: $0.value) }
        self.body = body
    }

    /// The first value of a header, whose name may be in any ASCII case.
    public func header(_ name: String) -> String? {
        headers.first { $0.name.equalsIgnoringASCIICase(name) }?.value
    }

    public static func == (a: HTTPResponse, b: HTTPResponse) -> Bool {
        a.status == b.status && a.reason == b.reason && a.headers == b.headers && a.body == b.body
    }
}
