/// Reads JSON texts (RFC 8259) without building a tree: values are read in place. Storage is reused
/// from text to text, so a document that is kept soon stops allocating.
package struct JSONDocument: ~Copyable {
    private var tape = JSONTape()
    /// The default depth, and the largest that a caller may ask for, because trees are read by
    /// recursion.
    package static let defaultDepth = 128
    package static let greatestDepth = 512

    /// How many bytes of memory a value, or the name of a member, takes at most beside its text.
    private static let valueBytes = 64
    /// How often the text is in memory at a time, at most, on its way to a handler: its values, a
    /// document with them, and a text for the handler that grows twofold.
    private static let copies = 4

    package init() {}

    /// How many values and names a text may have.
    /// - Parameter maximumBytes: how much memory they may take once they are read; 0 for any.
    package static func tokens(in maximumBytes: Int) -> Int {
        maximumBytes == 0 ? .max : maximumBytes / valueBytes
    }

    /// Reads `text` and calls `body` with its value. The value, and everything obtained from it, is
    /// valid until `body` returns.
    /// - Throws: `.protocolViolation` with the offset if the text is not JSON, nested deeper than
    ///   `maximumDepth`, or longer than 2 GiB; `.tooLarge` if its values, and the names of members,
    ///   are more than `maximumTokens` and 65,536, or if this process has not the memory for them;
    ///   and what `body` throws.
    package mutating func read<Result>(
        _ text: UnsafeRawBufferPointer, maximumDepth: Int = defaultDepth,
        maximumTokens: Int = .max,
        _ body: (JSONNode) throws(RealtimeError) -> Result
    ) throws(RealtimeError) -> Result {
        let depth = min(maximumDepth, JSONDocument.greatestDepth)
        return try readTokens(text, maximumDepth: depth, maximumTokens, body)
    }

    /// Like `read`, for a text of any depth: `body` may look only at the first levels.
    mutating func readTop<Result>(
        _ text: UnsafeRawBufferPointer, maximumTokens: Int,
        _ body: (JSONNode) throws(RealtimeError) -> Result
    ) throws(RealtimeError) -> Result {
        try readTokens(text, maximumDepth: .max, maximumTokens, body)
    }

    private mutating func readTokens<Result>(
        _ text: UnsafeRawBufferPointer, maximumDepth: Int, _ maximumTokens: Int,
        _ body: (JSONNode) throws(RealtimeError) -> Result
    ) throws(RealtimeError) -> Result {
        try tape.read(text, maximumDepth: maximumDepth, maximumTokens: maximumTokens)
        defer { tape.clear() }
        guard let tokens = tape.tokens else { throw JSONTape.fault(at: 0, "nothing") }
        let memory = text.count * JSONDocument.copies + tape.count * JSONDocument.valueBytes
        guard Memory.has(memory) else { throw JSONTape.noMemory }
        return try body(JSONNode(token: UnsafePointer(tokens), tokens: tokens, text: text))
    }
}

/// A value of a text, valid inside `JSONDocument.read`.
package struct JSONNode {
    package enum Kind: Sendable {
        case null, bool, number, string, array, object
    }

    let token: UnsafePointer<JSONToken>
    let tokens: UnsafePointer<JSONToken>
    let text: UnsafeRawBufferPointer

    package var kind: Kind {
        switch token.pointee.kind {
        case .null: .null
        case .true, .false: .bool
        case .number: .number
        case .string: .string
        case .array: .array
        case .object: .object
        }
    }

    /// The text of the value, borrowed.
    package var source: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: text[Int(token.pointee.start)..<Int(token.pointee.end)])
    }

    var span: JSONSpan {
        JSONSpan(source: source, kind: token.pointee.kind, isPlain: token.pointee.isPlain)
    }

    package var offset: Int { Int(token.pointee.start) }

    package var bool: Bool? {
        switch token.pointee.kind {
        case .true: true
        case .false: false
        case .null, .number, .string, .array, .object: nil
        }
    }

    /// The value of a number without fraction and exponent, if it fits. -0 is 0.
    package var integer: Int64? { span.integer }

    /// The `Double` nearest to any number; nil if it exceeds the range of `Double`, such as 1e400.
    package var double: Double? {
        token.pointee.kind == .number ? JSONNumber.double(source) : nil
    }

    package var string: String? {
        withString { String(decoding: $0, as: UTF8.self) }
    }

    /// Calls `body` with a string's bytes, which are those of the text if it has no escapes.
    /// - Returns: nil if the value is not a string.
    package func withString<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result? {
        span.withString(body)
    }

    /// Like `withString`, for a secret: a copy without escapes is overwritten afterwards.
    package func withSecret<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result? {
        span.withSecret(body)
    }

    /// An array's elements; empty if the value is not an array.
    package var elements: Elements {
        Elements(of: token.pointee.kind == .array ? self : nil)
    }

    /// An object's members in their order, including duplicates; empty if the value is not an
    /// object.
    package var members: Members {
        Members(of: token.pointee.kind == .object ? self : nil)
    }

    /// The last member with this name; nil if there is none, or the value is not an object.
    package func member(_ name: StaticString) -> JSONNode? {
        var found: JSONNode?
        for member in members where member.name.span.isWord(name) {
            found = member.value
        }
        return found
    }

    fileprivate func node(at index: UInt32) -> JSONNode {
        JSONNode(token: tokens + Int(index), tokens: tokens, text: text)
    }

    /// The index of the first token inside this value.
    fileprivate var first: UInt32 { UInt32(token - tokens) + 1 }
}

extension JSONNode {
    /// Where the names of an object's members are in `text`, with their quotation marks. Faster
    /// than `members`.
    var namePlaces: NamePlaces { NamePlaces(of: self) }

    struct NamePlaces: Sequence, IteratorProtocol {
        private let tokens: UnsafePointer<JSONToken>
        private var index: Int
        private let end: Int

        fileprivate init(of object: JSONNode) {
            tokens = object.tokens
            index = Int(object.first)
            end = object.token.pointee.kind == .object ? Int(object.token.pointee.next) : index
        }

        mutating func next() -> Range<Int>? {
            guard index < end else { return nil }
            let name = tokens + index
            index = Int((name + 1).pointee.next)
            return Int(name.pointee.start)..<Int(name.pointee.end)
        }
    }
}

extension JSONNode {
    package struct Elements: Sequence, IteratorProtocol {
        private let array: JSONNode?
        private var index: UInt32

        fileprivate init(of array: JSONNode?) {
            self.array = array
            index = array?.first ?? 0
        }

        package mutating func next() -> JSONNode? {
            guard let array, index < array.token.pointee.next else { return nil }
            let element = array.node(at: index)
            index = element.token.pointee.next
            return element
        }
    }

    package struct Members: Sequence, IteratorProtocol {
        private let object: JSONNode?
        private var index: UInt32

        fileprivate init(of object: JSONNode?) {
            self.object = object
            index = object?.first ?? 0
        }

        package mutating func next() -> (name: JSONNode, value: JSONNode)? {
            guard let object, index < object.token.pointee.next else { return nil }
            let value = object.node(at: index + 1)
            let name = object.node(at: index)
            index = value.token.pointee.next
            return (name, value)
        }
    }
}
