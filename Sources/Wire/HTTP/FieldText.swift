/// Bytes of a header as text. HTTP does not define their encoding (RFC 9110 §5.5). Bytes that are
/// not UTF-8 are decoded as ISO-8859-1, so that none of them are lost.
package struct FieldText: Sendable, Equatable {
    package let text: String
    /// Whether each character of `text` stands for the byte with its number.
    private let isLatin1: Bool

    package init(_ text: String) { self.init(text, isLatin1: false) }

    package init(bytes: some Collection<UInt8>) {
        if let text = String(validating: bytes, as: UTF8.self) {
            self.init(text)
        } else {
            var text = ""
            for byte in bytes { text.unicodeScalars.append(Unicode.Scalar(byte)) }
            self.init(text, isLatin1: true)
        }
    }

    private init(_ text: String, isLatin1: Bool) {
        self.text = text
        self.isLatin1 = isLatin1
    }

    /// The bytes as received.
    package var bytes: [UInt8] {
        guard isLatin1 else { return Array(text.utf8) }
        return text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
    }

    package static func == (a: FieldText, b: FieldText) -> Bool { a.bytes == b.bytes }
}
