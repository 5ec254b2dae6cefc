/// The file in which event sources keep their last event ids between runs: a line that names the
/// format, then a line for each source. That line is the source's key and id, both percent-encoded
/// (RFC 3986 §2.1), with a space between them.
package struct EventIDFile: Equatable, Sendable {
    /// The largest file, in bytes.
    package static let limit = 16 << 20
    package static let firstLine = "librealtime event ids 1"

    /// Keyed by bytes, because `String` treats texts that look the same as equal (docs/http.md,
    /// G1).
    private var ids: [[UInt8]: String] = [:]

    package init() {}

    /// Whether a file with these bytes may be replaced: it begins with our first line, or is a part
    /// of that line, as an empty file is.
    package static func isOurs(_ bytes: some Collection<UInt8>) -> Bool {
        let line = (firstLine + "\n").utf8
        return bytes.prefix(line.count).elementsEqual(line.prefix(bytes.count))
    }

    /// - Throws: `.store` if the bytes are not such a file, or are damaged.
    package init(parsing bytes: [UInt8]) throws(RealtimeError) {
        guard bytes.count <= EventIDFile.limit else {
            throw EventIDFile.damaged("has more than \(EventIDFile.limit) bytes")
        }
        guard bytes.last == UInt8(ascii: "\n") else {
            throw EventIDFile.damaged("does not end with a line feed")
        }
        var lines = bytes.dropLast().split(
            separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        guard lines.removeFirst().elementsEqual(EventIDFile.firstLine.utf8) else {
            throw EventIDFile.damaged("does not begin with \"\(EventIDFile.firstLine)\"")
        }
        for (index, line) in lines.enumerated() {
            let parts = line.split(separator: 0x20, omittingEmptySubsequences: false)
            guard parts.count == 2, let key = EventIDFile.decoded(parts[0]),
                let id = EventIDFile.decoded(parts[1]), EventIDFile.isValid(id: id), !id.isEmpty,
                ids.updateValue(id, forKey: Array(key.utf8)) == nil
            else { throw EventIDFile.damaged("is damaged in line \(index + 2)") }
        }
    }

    /// The id of a key. Setting nil removes it.
    package subscript(key: String) -> String? {
        get { ids[Array(key.utf8)] }
        set { ids[Array(key.utf8)] = newValue.flatMap { $0.isEmpty ? nil : $0 } }
    }

    /// Whether an id can come from a stream: a CR, LF or NUL would end a request's header.
    package static func isValid(id: String) -> Bool {
        !id.utf8.contains { $0 == 0 || $0 == 0x0A || $0 == 0x0D }
    }

    /// The size of an entry in the file, in bytes.
    package static func count(_ key: String, _ id: String) -> Int {
        id.isEmpty ? 0 : formEncoded(key).utf8.count + formEncoded(id).utf8.count + 2
    }

    package var bytes: [UInt8] {
        var text = EventIDFile.firstLine + "\n"
        for (key, id) in ids.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            let key = String(decoding: key, as: UTF8.self)
            text += "\(formEncoded(key)) \(formEncoded(id))\n"
        }
        return Array(text.utf8)
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
