/// A message as JSON: `{"id": …, "event": …, "data": …}` (docs/spreadbot.md, B6).
package struct SpreadbotEnvelope: Equatable {
    /// A string, or an integer in decimal; nil if there is none.
    package var id: [UInt8]?
    package let event: [UInt8]?
    /// A string's text, or any other value as JSON without blanks. nil for an element of a batch
    /// that is not a message; its id counts anyway.
    package let data: [UInt8]?

    /// The largest message as JSON, and the largest batch: parsing more would delay the loop
    /// noticeably.
    package static let maximumBytes = 16 << 20

    init(_ members: Members) {
        id = members.cursor
        event = members.event?.stringBytes.flatMap { $0.isEmpty ? nil : $0 }
        data = members.data.map { $0.stringBytes ?? $0.compact }
    }

    /// - Returns: nil if the bytes are not a JSON object with a member `data`.
    package static func message(
        _ bytes: UnsafeRawBufferPointer
    ) -> SpreadbotEnvelope? {
        var scanner = JSONScanner(bytes)
        scanner.skipBlanks()
        guard scanner.byte == UInt8(ascii: "{"), UTF8Validator.isValid(bytes),
            let members = try? Members(&scanner, levels: JSONDocument.defaultDepth),
            members.data != nil
        else { return nil }
        scanner.skipBlanks()
        return scanner.isAtEnd ? SpreadbotEnvelope(members) : nil
    }

    /// Whether it begins like a JSON object.
    package static func mayBeMessage(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var scanner = JSONScanner(bytes)
        scanner.skipBlanks()
        return scanner.byte == UInt8(ascii: "{")
    }

    /// The members that count, as spans of the text. If several have the same name, the last
    /// counts.
    struct Members {
        private(set) var id: JSONSpan?
        private(set) var event: JSONSpan?
        private(set) var data: JSONSpan?

        /// Reads the value here. If it is not an object, all members are nil.
        init(_ scanner: inout JSONScanner, levels: Int) throws(RealtimeError) {
            guard scanner.byte == UInt8(ascii: "{") else {
                try scanner.readValue(levels: levels)
                return
            }
            let levels = try scanner.inside(levels)
            guard scanner.enters(.object) else { return }
            repeat {
                switch Name(try scanner.readName()) {
                case .id: id = try scanner.readSpan(levels: levels)
                case .event: event = try scanner.readSpan(levels: levels)
                case .data: data = try scanner.readSpan(levels: levels)
                case .other: try scanner.readValue(levels: levels)
                }
            } while try scanner.continues(in: .object)
        }

        /// Whether the id can be a cursor.
        var hasCursor: Bool {
            switch id?.kind {
            case .string:
                // An escape has at most six bytes, and a string has two quotation marks.
                guard let id, id.source.count <= 6 * SpreadbotID.longest + 2 else { return false }
                return id.withString(SpreadbotID.isCursor) ?? false
            case .number:
                guard let id, id.isPlain, id.source.count <= SpreadbotID.longest else {
                    return false
                }
                // Digits alone count as an integer even if they do not fit into 64 bits.
                return id.source.first != UInt8(ascii: "-") || id.integer != nil
            default: return false
            }
        }

        /// The id, if it can be a cursor.
        var cursor: [UInt8]? {
            guard hasCursor, let id else { return nil }
            if let bytes = id.stringBytes { return bytes }
            // -0 is 0.
            return id.integer.map { Array(String($0).utf8) } ?? Array(id.source)
        }
    }

    private enum Name {
        case id, event, data, other

        init(_ name: JSONSpan) {
            // The longest name, with each byte written as an escape of six.
            guard name.source.count <= 32 else {
                self = .other
                return
            }
            self =
                name.withString { name in
                    switch name.count {
                    case 2 where name.elementsEqual("id".utf8): .id
                    case 4 where name.elementsEqual("data".utf8): .data
                    case 5 where name.elementsEqual("event".utf8): .event
                    default: .other
                    }
                } ?? .other
        }
    }
}
