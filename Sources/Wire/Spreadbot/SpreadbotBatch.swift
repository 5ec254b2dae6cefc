/// Messages as JSON in one answer, `{"messages": [...]}` (docs/spreadbot.md, B6). It is checked as
/// a whole; its elements are read one by one, and nothing is built of those that wait.
package struct SpreadbotBatch {
    /// The array.
    private var text: [UInt8] = []
    /// Of the next element; 0 for none.
    private var offset = 0
    /// Whether an element is a message.
    package private(set) var hasMessages = false
    /// The last id of an element.
    package private(set) var lastID: [UInt8]?
    /// What the last element carries if no element has an id.
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
        // It was read before: it does not fail now.
        var next = 0
        let envelope = text.withUnsafeBytes { text -> SpreadbotEnvelope? in
            var scanner = JSONScanner(text, from: offset)
            guard let members = try? SpreadbotEnvelope.Members(&scanner, levels: Self.levels),
                let goesOn = try? scanner.goesOn(in: .array)
            else { return nil }
            next = goesOn ? scanner.offset : 0
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
    /// - Returns: its last member of the name `messages`; nil for none.
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
        } while try scanner.goesOn(in: .object)
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
            } while try scanner.goesOn(in: .array)
        }
        lastID = last?.cursor
        return JSONSpan(source: scanner.source(from: start), kind: .array, isPlain: false)
    }
}
