/// Status line and header fields of an HTTP/1 response, in the order they came.
package struct ResponseHead: Equatable, Sendable {
    /// The x of HTTP/1.x.
    package var minorVersion: Int
    /// 100 to 999.
    package var status: Int
    package var reason: String
    package var fields: [HeaderField]

    package init(
        status: Int, reason: String = "", fields: [HeaderField] = [], minorVersion: Int = 1
    ) {
        self.minorVersion = minorVersion
        self.status = status
        self.reason = reason
        self.fields = fields
    }

    /// The values of every field with this name, in order; names match in any ASCII case.
    package func values(_ name: String) -> [String] {
        fields.lazy.filter { $0.name.equalsIgnoringASCIICase(name) }.map(\.value)
    }

    /// Whether a comma-separated list, over all fields with this name, holds the token, in any
    /// ASCII case (RFC 9110 §5.6.1).
    package func hasToken(_ token: String, in name: String) -> Bool {
        values(name).contains { value in
            value.utf8.split(separator: UInt8(ascii: ",")).contains { element in
                let element = element.trimmingBlanks
                return !element.isEmpty && Substring(element).equalsIgnoringASCIICase(token)
            }
        }
    }
}
