import CShims

// ASCII rules that headers share (RFC 9110 §5.6), and safe forms of foreign text for messages.

/// Whether a token may contain the byte (RFC 9110 §5.6.2).
package func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        return true
    case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"),
        UInt8(ascii: "&"), UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"),
        UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "^"), UInt8(ascii: "_"),
        UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
        return true
    default:
        return false
    }
}

/// SP or HTAB, the optional whitespace of RFC 9110 §5.6.3.
package func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

extension UInt8 {
    /// A to Z as a to z; all others unchanged.
    package var asciiLowercased: UInt8 { (0x41...0x5A).contains(self) ? self | 0x20 : self }

    package var isASCIIDigit: Bool { (0x30...0x39).contains(self) }
}

extension String {
    /// Whether `allows` returns true for every byte. This avoids a generic algorithm: one from
    /// another module costs as much as all the rest of a short request.
    package func hasBytes(only allows: (UInt8) -> Bool) -> Bool {
        utf8.withContiguousStorageIfAvailable { bytes in
            for byte in bytes where !allows(byte) { return false }
            return true
        } ?? utf8.allSatisfy(allows)
    }

    package var isToken: Bool { !isEmpty && hasBytes(only: isTokenByte) }

    /// The text before the first such byte, which must be ASCII; all of it if there is none.
    func upTo(_ byte: UInt8) -> String {
        let index = utf8.withContiguousStorageIfAvailable { bytes in
            shim_find_byte(bytes.baseAddress, bytes.count, byte)
        }
        let count = utf8.count
        guard let index else { return String(Substring(utf8.prefix { $0 != byte })) }
        return index == count ? self : String(Substring(utf8.prefix(index)))
    }

    /// Whether its UTF-8 begins with that of `prefix`. `hasPrefix` compares characters instead.
    func beginsWithBytes(of prefix: String) -> Bool {
        var (text, prefix) = (self, prefix)
        return text.withUTF8 { text in
            prefix.withUTF8 { prefix in
                guard text.count >= prefix.count else { return false }
                for index in prefix.indices where text[index] != prefix[index] { return false }
                return true
            }
        }
    }

    /// Whether both are equal, ignoring the case of A to Z only.
    package func equalsIgnoringASCIICase(_ other: String) -> Bool {
        guard utf8.count == other.utf8.count else { return false }
        var mine = utf8.makeIterator()
        var others = other.utf8.makeIterator()
        while let a = mine.next(), let b = others.next() {
            guard a == b || a.asciiLowercased == b.asciiLowercased else { return false }
        }
        return true
    }
}

extension Collection where Element == UInt8 {
    package var isToken: Bool { !isEmpty && allSatisfy(isTokenByte) }
}

extension Unicode.Scalar {
    /// The escape for a character that must not be printed in an error message.
    package var escaped: String { "\\u{\(String(value, radix: 16))}" }

    /// Whether a terminal would obey it, or a reader not see it: controls, and what ends a line,
    /// changes the direction of writing or has no width. The two joiners are shown: emoji and the
    /// words of some languages need them.
    fileprivate var isHidden: Bool {
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        case .format: value != 0x200C && value != 0x200D
        default: false
        }
    }
}

extension BidirectionalCollection where Element == UInt8 {
    /// Without the blanks at both ends.
    package var trimmingBlanks: SubSequence {
        guard let first = firstIndex(where: { !isBlank($0) }),
            let last = lastIndex(where: { !isBlank($0) })
        else { return self[endIndex...] }
        return self[first...last]
    }
}

extension StringProtocol {
    /// Whether both are equal, ignoring the case of A to Z only.
    package func equalsIgnoringASCIICase(_ other: some StringProtocol) -> Bool {
        utf8.elementsEqual(other.utf8) { $0.asciiLowercased == $1.asciiLowercased }
    }

    /// The text for a message or a log. Control characters and those that cannot be seen are
    /// written as escapes: a terminal would obey them, and a log could read them as a line end.
    package var withoutControls: String {
        guard utf8.contains(where: { $0 < 0x20 || $0 >= 0x7F }) else { return String(self) }
        return unicodeScalars.reduce(into: "") { result, scalar in
            if scalar.isHidden {
                result += scalar.escaped
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
    }

    /// The text in double quotes for an error message, cut after `limit` characters. Characters
    /// that a terminal or a log could interpret are written as escapes.
    package func quoted(upTo limit: Int = 100) -> String {
        var result = "\""
        var length = 0
        for scalar in unicodeScalars {
            if length == limit { return result + "…\"" }
            length += 1
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned:
                result += scalar.escaped
            default:
                result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
