/// The position of a value, or of a member's name, in its text.
struct JSONToken {
    enum Kind: UInt8 {
        case null, `false`, `true`, number, string, array, object
    }

    /// Offsets in the text: of the first byte, and of the one after the last.
    var start: UInt32
    var end: UInt32
    /// The token after this one and everything inside it. While an array or object is open: the one
    /// that contains it.
    var next: UInt32
    let kind: Kind
    /// A number without fraction and exponent; a string without escapes. Always false for arrays
    /// and objects.
    let isPlain: Bool
}

/// The tokens of a JSON text (RFC 8259) in order: a member is a token for its name, followed by
/// those of its value. Storage is reused for the next text; nothing is copied from the text.
struct JSONTape: ~Copyable {
    private(set) var tokens: UnsafeMutablePointer<JSONToken>?
    private(set) var count = 0
    private var capacity = 0
    /// The most tokens of the present text.
    private var limit = Int.max

    deinit { tokens?.deallocate() }

    /// Storage for more tokens than this, 1 MiB, is freed after the text.
    private static let keptTokens = 1 << 16
    /// The longest text in bytes, so that offsets fit into tokens.
    static let maximumBytes = Int(Int32.max)

    /// Reads a text. Its bytes are validated as UTF-8 (RFC 8259 §8.1); no byte order mark.
    /// - Throws: `.protocolViolation` with the offset and the fault; `.tooLarge` for more tokens
    ///   than allowed, of which 65,536 always are. The tape is empty then.
    mutating func read(
        _ text: UnsafeRawBufferPointer, maximumDepth: Int, maximumTokens: Int
    ) throws(RealtimeError) {
        count = 0
        limit = max(maximumTokens, JSONTape.keptTokens)
        guard text.count <= JSONTape.maximumBytes else {
            throw JSONTape.fault(at: 0, "more than \(JSONTape.maximumBytes) bytes")
        }
        guard UTF8Validator.isValid(text) else {
            throw JSONTape.fault(at: JSONTape.firstInvalid(text), "invalid UTF-8")
        }
        do throws(RealtimeError) {
            try readValues(JSONScanner(text), maximumDepth)
        } catch {
            count = 0
            throw error
        }
    }

    /// Forgets the text, and frees storage that is too large to keep.
    mutating func clear() {
        count = 0
        guard capacity > JSONTape.keptTokens else { return }
        tokens?.deallocate()
        tokens = nil
        capacity = 0
    }

    static var noMemory: RealtimeError {
        Memory.exceeded("the values of a JSON text")
    }

    static func fault(at offset: Int, _ what: String) -> RealtimeError {
        RealtimeError(.protocolViolation, "JSON, byte \(offset): \(what)")
    }

    /// Each pass reads one value, and closes all arrays and objects that end with it. The open ones
    /// are linked through the tape, so depth needs no stack.
    private mutating func readValues(
        _ scanner: JSONScanner, _ maximumDepth: Int
    ) throws(RealtimeError) {
        var scanner = scanner
        var innermost = JSONTape.none
        var depth = 0
        scanner.skipBlanks()
        while true {
            let start = scanner.offset
            switch scanner.byte {
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                guard depth < maximumDepth else {
                    throw JSONTape.fault(at: start, "nested deeper than \(maximumDepth)")
                }
                depth += 1
                let kind: JSONToken.Kind = scanner.byte == UInt8(ascii: "{") ? .object : .array
                let outer = innermost
                innermost = UInt32(count)
                try append(
                    JSONToken(kind: kind, from: start, to: start, next: outer, isPlain: false))
                if scanner.enters(kind) {
                    if kind == .object { try readName(&scanner) }
                    continue
                }
                innermost = outer
                close(count - 1, scanner)
                depth -= 1
            case UInt8(ascii: "\""):
                let isPlain = try scanner.readString()
                try append(.string, start, scanner.offset, isPlain)
            case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                let isInteger = try scanner.readNumber()
                try append(.number, start, scanner.offset, isInteger)
            default:
                let kind = try scanner.readLiteral()
                try append(kind, start, scanner.offset, true)
            }
            while innermost != JSONTape.none, let tokens {
                let container = tokens + Int(innermost)
                let kind = container.pointee.kind
                if try scanner.continues(in: kind) {
                    if kind == .object { try readName(&scanner) }
                    break
                }
                let outer = container.pointee.next
                close(Int(innermost), scanner)
                innermost = outer
                depth -= 1
            }
            if innermost == JSONTape.none { break }
        }
        scanner.skipBlanks()
        guard scanner.isAtEnd else { throw scanner.unexpected("after the value") }
    }

    /// Completes the token of an array or object that has ended.
    private func close(_ index: Int, _ scanner: JSONScanner) {
        guard let tokens else { return }
        (tokens + index).pointee.next = UInt32(count)
        (tokens + index).pointee.end = UInt32(scanner.offset)
    }

    /// Reads a member's name and the colon.
    private mutating func readName(_ scanner: inout JSONScanner) throws(RealtimeError) {
        let start = scanner.offset
        let name = try scanner.readName()
        try append(.string, start, start + name.source.count, name.isPlain)
    }

    private mutating func append(
        _ kind: JSONToken.Kind, _ start: Int, _ end: Int, _ isPlain: Bool
    ) throws(RealtimeError) {
        let next = UInt32(count + 1)
        try append(JSONToken(kind: kind, from: start, to: end, next: next, isPlain: isPlain))
    }

    private mutating func append(_ token: JSONToken) throws(RealtimeError) {
        if count == capacity { try grow() }
        guard let tokens else { return }
        (tokens + count).initialize(to: token)
        count += 1
    }

    /// A text has at most as many tokens as bytes, which bounds the storage.
    private mutating func grow() throws(RealtimeError) {
        guard count < limit else {
            throw RealtimeError(.tooLarge, "JSON with more than \(limit) values and names")
        }
        let grown = min(max(64, capacity * 2), limit)
        guard Memory.has(grown * MemoryLayout<JSONToken>.stride) else { throw JSONTape.noMemory }
        let fresh = UnsafeMutablePointer<JSONToken>.allocate(capacity: grown)
        if let tokens {
            fresh.moveInitialize(from: tokens, count: count)
            tokens.deallocate()
        }
        tokens = fresh
        capacity = grown
    }

    private static let none = UInt32.max

    private static func firstInvalid(_ text: UnsafeRawBufferPointer) -> Int {
        var validator = UTF8Validator()
        for index in text.indices {
            let byte = UnsafeRawBufferPointer(rebasing: text[index...index])
            if !validator.accepts(byte) { return index }
        }
        return text.count
    }
}

extension JSONToken {
    init(kind: Kind, from start: Int, to end: Int, next: UInt32, isPlain: Bool) {
        self.init(
            start: UInt32(start), end: UInt32(end), next: next, kind: kind, isPlain: isPlain)
    }
}
