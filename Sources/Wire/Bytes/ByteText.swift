/// A text as a key: compared and hashed by its UTF-8 bytes, because `String` treats composed and
/// decomposed letters as equal. Each process seeds its hashes differently, so a peer cannot choose
/// texts that collide.
package struct ByteText: Hashable, Sendable {
    package let text: String

    package init(_ text: String) { self.text = text }

    package static func == (first: ByteText, second: ByteText) -> Bool {
        first.text.hasSameBytes(as: second.text)
    }

    package func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

extension String? {
    /// Whether both are nil, or have the same bytes.
    package func hasSameBytes(as other: String?) -> Bool {
        guard let self, let other else { return self == nil && other == nil }
        return self.hasSameBytes(as: other)
    }
}

extension String {
    /// Whether both have the same bytes; `==` would also take different spellings of an accented
    /// letter for the same text.
    package func hasSameBytes(as other: String) -> Bool {
        guard utf8.count == other.utf8.count else { return false }
        var other = other
        return other.withUTF8 { hasBytes(UnsafeRawBufferPointer($0)) }
    }

    package func hasBytes(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard utf8.count == bytes.count else { return false }
        var text = self
        return text.withUTF8 { UnsafeRawBufferPointer($0).hasSameBytes(as: bytes) }
    }

    /// Whether this is the ASCII text `other`.
    package func hasBytes(_ other: StaticString) -> Bool {
        var text = self
        return text.withUTF8 { UnsafeRawBufferPointer($0).isWord(other) }
    }

    /// Compares texts by their UTF-16 code units, as JavaScript does.
    /// - Returns: a negative number if `first` comes first, a positive one if `second` does, 0 if
    ///   the texts are equal.
    package static func orderOfUTF16(_ first: String, _ second: String) -> Int {
        var first = first
        var second = second
        return first.withUTF8 { first in
            second.withUTF8 { second in orderOfUTF16(first, second) }
        }
    }

    /// The order of UTF-8 bytes is that of UTF-16 code units, except that characters above U+FFFF,
    /// which begin with F0 or more, come before those from U+E000 to U+FFFF, which begin with EE
    /// or EF.
    private static func orderOfUTF16(
        _ first: UnsafeBufferPointer<UInt8>, _ second: UnsafeBufferPointer<UInt8>
    ) -> Int {
        for (first, second) in zip(first, second) where first != second {
            let order = Int(first) - Int(second)
            let (lower, higher) = order < 0 ? (first, second) : (second, first)
            return higher >= 0xF0 && lower >= 0xEE && lower < 0xF0 ? -order : order
        }
        return first.count - second.count
    }
}
