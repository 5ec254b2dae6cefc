/// The credentials that an object has sent. A server that quotes them must not bring them into a
/// message, a reason, an event or the log: `redacted` replaces each by "…".
///
/// Finds a value as it was sent, also form-encoded or with JSON's escapes, and the beginning of one
/// that was cut off. The time is linear in the length of the text.
package struct SentSecrets: Sendable {
    /// One value, without backslashes, and the key of its beginning.
    private struct Value: Sendable {
        let key: UInt64
        let bytes: SecretBytes
    }

    /// Shorter values are not looked for: they also occur where nobody quotes them.
    package static let leastBytes = 6
    /// How much of a value's beginning counts even if something else follows.
    package static let leastBeginning = 16
    /// The bytes of a value that are looked for.
    package static let mostBytes = 16 << 10
    /// How many values are kept, the latest ones.
    package static let mostValues = 64

    private var values: [Value] = []
    /// A bit for the key of each value.
    private var keys = SIMD4<UInt64>(repeating: 0)

    package init() {}

    /// The credentials among headers, and in a URL.
    package init(_ fields: [HeaderField], _ url: HTTPURL? = nil) {
        for field in fields where SentSecrets.isCredential(field.name) { add(field) }
        add(url)
    }

    package var isEmpty: Bool { values.isEmpty }

    // MARK: Adding

    package mutating func add(_ value: String?) {
        guard let value else { return }
        insert(Array(value.utf8))
        let encoded = formEncoded(value)
        if encoded.utf8.count != value.utf8.count { insert(Array(encoded.utf8)) }
    }

    /// A header's value, after its scheme if it has one; each value of a Cookie.
    package mutating func add(_ field: HeaderField) {
        let value = field.value
        if field.name.equalsIgnoringASCIICase("Cookie") {
            for pair in value.split(separator: ";") {
                let parts = pair.split(separator: "=", maxSplits: 1)
                if parts.count == 2 { add(String(parts[1])) }
            }
            return
        }
        let words = value.split(separator: " ", maxSplits: 1)
        let hasScheme = field.name.lowercased().hasSuffix("authorization")
        if words.count < 2 || !hasScheme { add(value) }
        guard words.count == 2 else { return }
        add(String(words[1]))
        if words[0].equalsIgnoringASCIICase("Basic") { add(basicCredentials: String(words[1])) }
    }

    /// The base64 form of a user and a password.
    package mutating func add(basicCredentials text: String) {
        add(text)
        var text = text
        var decoded = [UInt8](repeating: 0, count: text.utf8.count)
        let count = text.withUTF8 { text in
            decoded.withUnsafeMutableBytes {
                decodeBase64(UnsafeRawBufferPointer(text), into: $0)
            }
        }
        guard let count else { return }
        let pair = decoded.prefix(count)
        guard let colon = pair.firstIndex(of: UInt8(ascii: ":")) else { return }
        add(String(decoding: pair[(colon + 1)...], as: UTF8.self))
    }

    /// The password of a URL, and the credentials among the parameters of its query.
    package mutating func add(_ url: HTTPURL?) {
        guard let url else { return }
        addQuery(of: url.target)
        guard let password = url.password else { return }
        add(password)
        if let value = url.basicAuthorization {
            add(HeaderField(name: "Authorization", value: value))
        }
    }

    private mutating func addQuery(of target: String) {
        guard let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return }
        for pair in target[target.index(after: mark)...].split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1)
            guard parts.count == 2,
                SentSecrets.isCredential(String(decoding: formDecoded(parts[0]), as: UTF8.self))
            else { continue }
            insert(Array(parts[1].utf8))
            add(String(decoding: formDecoded(parts[1]), as: UTF8.self))
        }
    }

    package mutating func add(_ others: SentSecrets) {
        for value in others.values { insert(value) }
    }

    /// Whether the name of a header or parameter says that its value is a credential.
    package static func isCredential(_ name: String) -> Bool {
        let name = Array(name.lowercased().utf8)
        return credentialWords.contains { word in
            let word = Array(word.utf8)
            return name.indices.contains { name[$0...].starts(with: word) }
        }
    }

    private static let credentialWords = [
        "apikey", "api-key", "auth", "cookie", "credential", "jwt", "passw", "secret", "session",
        "signature", "token", "access-key", "csrf", "xsrf",
    ]

    private mutating func insert(_ bytes: [UInt8]) {
        let plain = bytes.prefix(SentSecrets.mostBytes).withUnsafeBytes { text in
            var plain: [UInt8] = []
            var index = 0
            while index < text.count {
                let unit = SentSecrets.unit(in: text, at: index)
                plain.append(unit.byte)
                index = unit.end
            }
            return plain
        }
        guard plain.count >= SentSecrets.leastBytes else { return }
        let key = plain.prefix(SentSecrets.leastBytes).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        insert(plain.withUnsafeBytes { Value(key: key, bytes: SecretBytes($0)) })
    }

    private mutating func insert(_ value: Value) {
        values.removeAll { $0.key == value.key && $0.bytes.isEqual(to: value.bytes) }
        if values.count == SentSecrets.mostValues { values.removeFirst() }
        values.append(value)
        keys = SIMD4(repeating: 0)
        for value in values {
            let (word, bit) = SentSecrets.place(of: value.key)
            keys[word] |= bit
        }
    }

    // MARK: Redacting

    package func redacted(_ text: String) -> String {
        guard !values.isEmpty else { return text }
        var copy = text
        let shown = copy.withUTF8 { redacted(UnsafeRawBufferPointer($0)) }
        return shown.map { String(decoding: $0, as: UTF8.self) } ?? text
    }

    package func redacted(_ bytes: [UInt8]) -> [UInt8] {
        guard !values.isEmpty else { return bytes }
        return bytes.withUnsafeBytes { redacted($0) } ?? bytes
    }

    /// An error's message, and the response that it has.
    package func redacted(_ error: RealtimeError) -> RealtimeError {
        guard !values.isEmpty else { return error }
        return RealtimeError(
            error.code, redacted(error.message), response: error.response.map { redacted($0) },
            systemError: error.systemError)
    }

    package func redacted(_ response: HTTPResponse) -> HTTPResponse {
        guard !values.isEmpty else { return response }
        return HTTPResponse(response, redacting: self)
    }

    func redacted(_ text: FieldText) -> FieldText {
        let bytes = text.bytes
        return bytes.withUnsafeBytes { redacted($0) }.map { FieldText(bytes: $0) } ?? text
    }

    /// - Returns: nil if there is nothing to redact.
    private func redacted(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
        var shown: [UInt8] = []
        /// What follows `shown`.
        var rest = 0
        var window = Window()
        var index = 0
        while index < text.count {
            let unit = SentSecrets.unit(in: text, at: index)
            window.append(unit.byte, at: index)
            index = unit.end
            guard window.isFull, mayBegin(window.key),
                let end = secret(in: text, at: window.start, window.key)
            else { continue }
            shown.append(contentsOf: text[rest..<window.start])
            shown.append(contentsOf: "…".utf8)
            (rest, index) = (end, end)
            window = Window()
        }
        guard rest > 0 else { return nil }
        shown.append(contentsOf: text[rest...])
        return shown
    }

    /// Where the longest secret ends that begins here; nil if none does.
    private func secret(in text: UnsafeRawBufferPointer, at start: Int, _ key: UInt64) -> Int? {
        var longest: Int?
        for value in values where value.key == key {
            let end = value.bytes.withBytes { secret -> Int? in
                var (index, count) = (start, 0)
                while index < text.count, count < secret.count {
                    let unit = SentSecrets.unit(in: text, at: index)
                    guard unit.byte == secret[count] else { break }
                    index = unit.end
                    count += 1
                }
                let isFound =
                    count == secret.count || count >= SentSecrets.leastBeginning
                    || index == text.count || SentSecrets.isCut(text, at: index)
                return isFound ? index : nil
            }
            if let end { longest = max(end, longest ?? end) }
        }
        return longest
    }

    /// Whether a message was cut off here.
    private static func isCut(_ text: UnsafeRawBufferPointer, at index: Int) -> Bool {
        UnsafeRawBufferPointer(rebasing: text[index...]).starts(with: "…".utf8)
    }

    private func mayBegin(_ key: UInt64) -> Bool {
        let (word, bit) = SentSecrets.place(of: key)
        return keys[word] & bit != 0
    }

    private static func place(of key: UInt64) -> (word: Int, bit: UInt64) {
        let hash = (key &* 0x9E37_79B9_7F4A_7C15) >> 56
        return (Int(hash >> 6), 1 << (hash & 63))
    }

    /// The next byte of a text, without the backslashes that JSON has put before it, each of which
    /// may be doubled where JSON is inside a string. `\u` and four digits are one ASCII character.
    /// - Returns: `backslashes` is how many there were, and `isCode` whether the byte was one of
    ///   these codes.
    static func unit(
        in text: UnsafeRawBufferPointer, at start: Int
    ) -> (byte: UInt8, backslashes: Int, isCode: Bool, end: Int) {
        let backslash = UInt8(ascii: "\\")
        guard text[start] == backslash else { return (text[start], 0, false, start + 1) }
        var index = start + 1
        // JSON is not nested so deep that there are more.
        while index < text.count, text[index] == backslash, index - start < 16 { index += 1 }
        let count = index - start
        guard index < text.count else { return (backslash, count - 1, false, index) }
        let plain = (text[index], count, false, index + 1)
        guard text[index] == UInt8(ascii: "u"), index + 4 < text.count else { return plain }
        var code = 0
        for digit in text[(index + 1)...(index + 4)] {
            guard let value = digit.hexDigitValue else { return plain }
            code = code << 4 | Int(value)
        }
        return code < 0x80 ? (UInt8(code), count, true, index + 5) : plain
    }

    /// The last bytes that were read, and where each began.
    private struct Window {
        private(set) var key: UInt64 = 0
        private var starts: (Int, Int, Int, Int, Int, Int) = (0, 0, 0, 0, 0, 0)
        private var count = 0

        var isFull: Bool { count == SentSecrets.leastBytes }
        var start: Int { starts.0 }

        mutating func append(_ byte: UInt8, at index: Int) {
            key = (key << 8 | UInt64(byte)) & 0xFFFF_FFFF_FFFF
            starts = (starts.1, starts.2, starts.3, starts.4, starts.5, index)
            count = min(count + 1, SentSecrets.leastBytes)
        }
    }
}
