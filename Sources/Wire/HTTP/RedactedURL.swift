extension HTTPURL {
    /// The URL for a message, in quotes. "***" replaces user and password, and the query and
    /// fragment, which often contain tokens. In text that is not a URL, it also replaces everything
    /// that may be a password: "http://user:secret#1@host/", for example, has the port "secret"
    /// (RFC 3986 §3.2).
    package static func redacted(_ text: String) -> String {
        var rest = text.utf8[...]
        var result = ""
        if let colon = rest.firstIndex(of: UInt8(ascii: ":")), isScheme(rest[..<colon]),
            rest[colon...].starts(with: "://".utf8)
        {
            let start = rest.index(colon, offsetBy: 3)
            result = String(Substring(rest[..<start]))
            rest = rest[start...]
        }
        let hasScheme = !result.isEmpty
        // The last "@" anywhere: in a malformed URL a password may continue after a slash.
        if let at = rest.lastIndex(of: UInt8(ascii: "@")) {
            result += "***@"
            rest = rest[rest.index(after: at)...]
        }
        var end = ""
        if let mark = rest.firstIndex(where: { "?#".utf8.contains($0) }) {
            end = rest[mark] == UInt8(ascii: "?") ? "?***" : "#***"
            rest = rest[..<mark]
        }
        let slashes = rest.prefix { $0 == UInt8(ascii: "/") }
        result += String(Substring(slashes))
        rest = rest[slashes.endIndex...]
        // Without a scheme it is unknown where the authority ends.
        let hasAuthority = hasScheme && slashes.isEmpty
        let checked = hasAuthority ? rest.prefix { $0 != UInt8(ascii: "/") } : rest
        let shown = harmlessPrefix(checked)
        if shown.endIndex == checked.endIndex {
            result += String(Substring(rest)) + end
        } else {
            // The rest may belong to the password, too.
            result += String(Substring(shown)) + "***"
        }
        return result.quoted(upTo: 200)
    }
}

/// The longest prefix that is a host with numeric ports, which cannot be a password.
private func harmlessPrefix(_ text: Substring.UTF8View) -> Substring.UTF8View {
    var rest = text
    if rest.first == UInt8(ascii: "[") {
        guard let end = rest.firstIndex(of: UInt8(ascii: "]")),
            rest[..<end].dropFirst().allSatisfy(isAddressByte)
        else { return text.prefix(0) }
        rest = rest[rest.index(after: end)...]
    } else {
        let host = rest.prefix { $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: "/") }
        guard Substring(host).unicodeScalars.allSatisfy(isHostScalar) else { return text.prefix(0) }
        rest = rest[host.endIndex...]
    }
    guard rest.first.map({ ":/".utf8.contains($0) }) ?? true else {
        return text[..<rest.startIndex]
    }
    while let colon = rest.firstIndex(of: UInt8(ascii: ":")) {
        let start = rest.index(after: colon)
        let port = rest[start...].prefix { $0 != UInt8(ascii: "/") }
        // An empty port is allowed, but a password that begins with a slash looks the same.
        if port.isEmpty, start == text.endIndex { return text[..<colon] }
        guard (1...5).contains(port.count), port.allSatisfy({ $0.isASCIIDigit }) else {
            return text[..<start]
        }
        rest = rest[port.endIndex...]
    }
    return text
}

private func isAddressByte(_ byte: UInt8) -> Bool {
    byte.hexDigitValue != nil || byte == UInt8(ascii: ":") || byte == UInt8(ascii: ".")
}

/// Whether it can be part of a host name, which may be an international one.
private func isHostScalar(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.isASCII { return isUnreserved(UInt8(truncatingIfNeeded: scalar.value)) }
    switch scalar.properties.generalCategory {
    case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter,
        .nonspacingMark, .spacingMark:
        return true
    default: return false
    }
}
