/// One header field. Its value has no blanks at the ends.
package struct HeaderField: Equatable, Sendable {
    package var name: String
    package var content: FieldText

    package init(name: String, content: FieldText) {
        self.name = name
        self.content = content
    }

    package init(name: String, value: String) {
        self.init(name: name, content: FieldText(value))
    }

    package var value: String { content.text }

    /// Compares bytes, because `String` treats different bytes as equal (G1).
    package static func == (a: HeaderField, b: HeaderField) -> Bool {
        a.name.hasSameBytes(as: b.name) && a.content == b.content
    }
}

/// Headers that frame a message. The caller must not set them.
private let framingNames = ["Connection", "Content-Length", "Transfer-Encoding", "Upgrade"]

extension HeaderField {
    /// Checks a caller's header.
    /// - Parameter mayExpect: whether Expect is allowed. It is allowed only for a single request:
    ///   an object that makes many would wait before each of them (docs/eventsource.md, C1).
    /// - Throws: `.invalidHeader`, naming the header and never its value.
    package static func validate(
        name: String, value: String, mayExpect: Bool = false
    ) throws(RealtimeError) {
        guard name.utf8.isToken else {
            throw RealtimeError(
                .invalidHeader,
                "The header name \(name.quoted()) is not a token (RFC 9110 §5.6.2)")
        }
        if framingNames.contains(where: { $0.equalsIgnoringASCIICase(name) }) {
            throw RealtimeError(
                .invalidHeader, "The header \(name.quoted()) is set by the library itself")
        }
        // A host may have brackets, a port, and characters that a name has not (RFC 3986 §3.2.2).
        guard !name.equalsIgnoringASCIICase("Host") || value.hasBytes(only: isHostFieldByte) else {
            throw RealtimeError(
                .invalidHeader, "The header \(name.quoted()) is not a host, or a host and a port")
        }
        guard mayExpect || !name.equalsIgnoringASCIICase("Expect") else {
            throw RealtimeError(
                .invalidHeader,
                "The header \(name.quoted()) is only for single requests: here each would wait")
        }
        // RFC 9110 §5.5. A tab is the only control character allowed.
        guard !value.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) else {
            throw RealtimeError(
                .invalidHeader,
                "The value of the header \(name.quoted()) has a CR, LF, NUL or other control "
                    + "character")
        }
    }

    /// Checks that the caller adds no second Host (RFC 9112 §3.2).
    package static func validate(
        adding name: String, to fields: HeaderFields
    ) throws(RealtimeError) {
        guard name.equalsIgnoringASCIICase("Host"), fields.has(name) else { return }
        throw RealtimeError(.invalidHeader, "The header \(name.quoted()) can be set only once")
    }

    /// The value of Authorization for Basic credentials (RFC 7617 §2).
    package static func basicAuthorization(
        user: String, password: String
    ) throws(RealtimeError) -> String {
        guard !user.utf8.contains(UInt8(ascii: ":")) else {
            throw RealtimeError(
                .invalidArgument, "the user name has a colon, which RFC 7617 §2 forbids")
        }
        return "Basic " + base64(Array("\(user):\(password)".utf8))
    }

    /// The value of Authorization for a token (RFC 6750 §2.1).
    package static func bearerAuthorization(_ token: String) throws(RealtimeError) -> String {
        guard !token.isEmpty else {
            throw RealtimeError(.invalidArgument, "the bearer token is empty")
        }
        let value = "Bearer \(token)"
        try validate(name: "Authorization", value: value)
        return value
    }
}

private func isHostFieldByte(_ byte: UInt8) -> Bool {
    isUnreserved(byte) || "!$&'()*+;=:[]%".utf8.contains(byte)
}
