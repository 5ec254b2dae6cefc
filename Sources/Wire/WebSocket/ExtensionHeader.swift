/// One extension of a Sec-WebSocket-Extensions header (RFC 6455 §9.1).
package struct ExtensionHeader: Equatable, Sendable {
    package struct Parameter: Equatable, Sendable {
        package var name: String
        /// Without quotes; nil if the parameter has no value.
        package var value: String?

        package init(_ name: String, _ value: String? = nil) {
            self.name = name
            self.value = value
        }
    }

    package var name: String
    package var parameters: [Parameter]

    package init(_ name: String, _ parameters: [Parameter] = []) {
        self.name = name
        self.parameters = parameters
    }

    /// Reads one header's comma-separated extensions; empty elements are skipped (RFC 9110 §5.6.1).
    /// - Throws: `.handshake` if the grammar does not allow the text.
    package static func parse(_ text: String) throws(RealtimeError) -> [ExtensionHeader] {
        var scanner = Scanner(rest: Array(text.utf8)[...], text: text)
        var result: [ExtensionHeader] = []
        repeat {
            scanner.skipBlanks()
            if scanner.rest.isEmpty { break }
            if scanner.rest.first == UInt8(ascii: ",") { continue }
            result.append(try scanner.element())
        } while scanner.skip(UInt8(ascii: ","))
        if !scanner.rest.isEmpty { throw scanner.malformed }
        return result
    }
}

private struct Scanner {
    var rest: ArraySlice<UInt8>
    let text: String

    var malformed: RealtimeError {
        RealtimeError(
            .handshake,
            "The server's Sec-WebSocket-Extensions \(text.quoted()) is malformed")
    }

    mutating func skipBlanks() {
        rest = rest.drop(while: isBlank)
    }

    /// Skips blanks and then this byte. Returns false if the next byte is another.
    mutating func skip(_ byte: UInt8) -> Bool {
        skipBlanks()
        guard rest.first == byte else { return false }
        rest.removeFirst()
        return true
    }

    /// `token *( ";" token [ "=" ( token | quoted-string ) ] )`
    mutating func element() throws(RealtimeError) -> ExtensionHeader {
        var result = ExtensionHeader(try token())
        while skip(UInt8(ascii: ";")) {
            skipBlanks()
            var parameter = ExtensionHeader.Parameter(try token())
            if skip(UInt8(ascii: "=")) {
                skipBlanks()
                parameter.value =
                    rest.first == UInt8(ascii: "\"") ? try quotedToken() : try token()
            }
            result.parameters.append(parameter)
        }
        return result
    }

    private mutating func token() throws(RealtimeError) -> String {
        let token = rest.prefix(while: isTokenByte)
        if token.isEmpty { throw malformed }
        rest = rest[token.endIndex...]
        return String(decoding: token, as: UTF8.self)
    }

    /// The unescaped content of the quotes must be a token (RFC 6455 §9.1).
    private mutating func quotedToken() throws(RealtimeError) -> String {
        var value: [UInt8] = []
        rest.removeFirst()
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\""):
                guard value.isToken else { throw malformed }
                return String(decoding: value, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let escaped = rest.popFirst() else { throw malformed }
                value.append(escaped)
            default:
                value.append(byte)
            }
        }
        throw malformed
    }
}
