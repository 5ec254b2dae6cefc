/// A file that keeps texts between runs, such as the last event ids of event sources: a line that
/// names the format, then a line for each text. That line is the key and the text, both
/// percent-encoded (RFC 3986 §2.1), with a space between them.
package struct KeyedFile: Equatable, Sendable {
    /// The largest file, in bytes.
    package static let limit = 16 << 20

    private let format: OwnFileFormat

    /// Keyed by bytes, because `String` treats texts that look the same as equal (docs/http.md,
    /// G1).
    private var texts: [[UInt8]: String] = [:]

    package init(_ format: OwnFileFormat) { self.format = format }

    /// - Throws: `.store` if the bytes are not such a file, or are damaged.
    package init(
        parsing bytes: [UInt8], _ format: OwnFileFormat
    ) throws(RealtimeError) {
        self.format = format
        guard bytes.count <= KeyedFile.limit else {
            throw KeyedFile.damaged("has more than \(KeyedFile.limit) bytes")
        }
        guard bytes.last == UInt8(ascii: "\n") else {
            throw KeyedFile.damaged("does not end with a line feed")
        }
        var lines = bytes.dropLast().split(
            separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        guard lines.removeFirst().elementsEqual(format.firstLine.utf8) else {
            throw KeyedFile.damaged("does not begin with \"\(format.firstLine)\"")
        }
        for (index, line) in lines.enumerated() {
            let parts = line.split(separator: 0x20, omittingEmptySubsequences: false)
            guard parts.count == 2, let key = KeyedFile.decoded(parts[0]),
                let text = KeyedFile.decoded(parts[1]), KeyedFile.isValid(text), !text.isEmpty,
                texts.updateValue(text, forKey: Array(key.utf8)) == nil
            else { throw KeyedFile.damaged("is damaged in line \(index + 2)") }
        }
    }

    /// The text of a key. Setting nil removes it.
    package subscript(key: String) -> String? {
        get { texts[Array(key.utf8)] }
        set { texts[Array(key.utf8)] = newValue.flatMap { $0.isEmpty ? nil : $0 } }
    }

    /// Whether a text can be stored: a CR, LF or NUL would end the header of the request in which
    /// an event id is sent.
    package static func isValid(_ text: String) -> Bool {
        !text.utf8.contains { $0 == 0 || $0 == 0x0A || $0 == 0x0D }
    }

    /// The size of an entry in the file, in bytes.
    package static func count(_ key: String, _ text: String) -> Int {
        text.isEmpty ? 0 : formEncoded(key).utf8.count + formEncoded(text).utf8.count + 2
    }

    package var bytes: [UInt8] {
        var content = format.firstLine + "\n"
        for (key, text) in texts.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            let key = String(decoding: key, as: UTF8.self)
            content += "\(formEncoded(key)) \(formEncoded(text))\n"
        }
        return Array(content.utf8)
    }

    private static func decoded(_ text: ArraySlice<UInt8>) -> String? {
        var result: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                guard byte > 0x20, byte < 0x7F else { return nil }
                result.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            guard digits.count == 2, digits.allSatisfy({ $0.isHexDigit }),
                let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            else { return nil }
            rest = rest.dropFirst(2)
            result.append(value)
        }
        guard !result.isEmpty else { return nil }
        return String(validating: result, as: UTF8.self)
    }

    private static func damaged(_ fault: String) -> RealtimeError {
        RealtimeError(.store, fault)
    }
}

extension UInt8 {
    fileprivate var isHexDigit: Bool {
        isASCIIDigit || (0x61...0x66).contains(asciiLowercased)
    }
}
