/// Messages as JSON in one response, `{"messages": [...]}` (docs/spreadbot.md, B6). The text is
/// checked as a whole, and its elements are read one by one. Waiting elements stay text.
package struct SpreadbotBatch {
    /// The array.
    private var text: [UInt8] = []
    /// The offset of the next element; 0 if there is none.
    private var offset = 0
    /// Whether an element is a message.
    package private(set) var hasMessages = false
    /// The last id in the batch.
    package private(set) var lastID: [UInt8]?
    /// The id for the last element if no element has one.
    package var idOfAnswer: [UInt8]?

    package static let mediaType = "application/vnd.spreadbot.batch+json"

    /// An empty one.
    package init() {}

    /// - Returns: nil if the text is not a batch.
    package init?(parsing bytes: UnsafeRawBufferPointer) {
        guard UTF8Validator.isValid(bytes) else { return nil }
        var scanner = JSONScanner(bytes)
        scanner.skipBlanks()
        guard scanner.byte == UInt8(ascii: "{"), let list = try? readMembers(&scanner) else {
            return nil
        }
        scanner.skipBlanks()
        guard scanner.isAtEnd, list.kind == .array else { return nil }
        text = Array(list.source)
        var start = JSONScanner(list.source)
        if start.enters(.array) { offset = start.offset }
    }

    /// Whether no element is left.
    package var isEmpty: Bool { offset == 0 }

    /// Bytes of text that are left.
    package var bytesLeft: Int { isEmpty ? 0 : text.count - offset }

    package mutating func next() -> SpreadbotEnvelope? {
        guard !isEmpty else { return nil }
        // The text was checked before, so this cannot fail.
        var next = 0
        let envelope = text.withUnsafeBytes { text -> SpreadbotEnvelope? in
            var scanner = JSONScanner(text, from: offset)
            guard let members = try? SpreadbotEnvelope.Members(&scanner, levels: Self.levels),
                let continues = try? scanner.continues(in: .array)
            else { return nil }
            next = continues ? scanner.offset : 0
            return SpreadbotEnvelope(members)
        }
        offset = next
        if isEmpty { text = [] }
        guard var envelope else { return nil }
        if isEmpty, let idOfAnswer, lastID == nil { envelope.id = idOfAnswer }
        return envelope
    }

    /// Inside the object and the array.
    private static let levels = JSONDocument.defaultDepth - 2

    /// Reads the object here.
    /// - Returns: its last member with the name `messages`; nil if there is none.
    private mutating func readMembers(
        _ scanner: inout JSONScanner
    ) throws(RealtimeError) -> JSONSpan? {
        var list: JSONSpan?
        guard scanner.enters(.object) else { return nil }
        repeat {
            let name = try scanner.readName()
            if name.source.count <= 50, name.withString(Self.isList) ?? false {
                list = try readMessages(&scanner)
            } else {
                try scanner.readValue(levels: Self.levels + 1)
            }
        } while try scanner.continues(in: .object)
        return list
    }

    private static func isList(_ name: UnsafeRawBufferPointer) -> Bool {
        name.count == 8 && name.elementsEqual("messages".utf8)
    }

    private mutating func readMessages(
        _ scanner: inout JSONScanner
    ) throws(RealtimeError) -> JSONSpan {
        (hasMessages, lastID) = (false, nil)
        guard scanner.byte == UInt8(ascii: "[") else {
            return try scanner.readSpan(levels: Self.levels + 1)
        }
        let start = scanner.offset
        var last: SpreadbotEnvelope.Members?
        if scanner.enters(.array) {
            repeat {
                guard scanner.byte == UInt8(ascii: "{") else {
                    try scanner.readValue(levels: Self.levels)
                    continue
                }
                let members = try SpreadbotEnvelope.Members(&scanner, levels: Self.levels)
                if members.data != nil { hasMessages = true }
                if members.hasCursor { last = members }
            } while try scanner.continues(in: .array)
        }
        lastID = last?.cursor
        return JSONSpan(source: scanner.source(from: start), kind: .array, isPlain: false)
    }
}
