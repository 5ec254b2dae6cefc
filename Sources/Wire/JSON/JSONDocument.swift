/// Reads JSON texts (RFC 8259) without building anything of them: values are looked at where they
/// stand. Its storage is used again from text to text, so that one that is kept allocates nothing
/// once it is warm.
package struct JSONDocument: ~Copyable {
    private var tape = JSONTape()
    /// What is read by default, and the most that can be asked for: trees are walked by recursion.
    package static let defaultDepth = 128
    package static let greatestDepth = 512

    package init() {}

    /// Reads `text` and calls `body` with its value. The value and all that is got from it are
    /// valid until `body` returns.
    /// - Throws: `.protocolViolation` for what is no JSON text, nested deeper than `maximumDepth`
    ///   or longer than 2 GiB, with the offset; what `body` throws.
    package mutating func read<Result>(
        _ text: UnsafeRawBufferPointer, maximumDepth: Int = defaultDepth,
        _ body: (JSONNode) throws(RealtimeError) -> Result
    ) throws(RealtimeError) -> Result {
        try tape.read(text, maximumDepth: min(maximumDepth, JSONDocument.greatestDepth))
        defer { tape.clear() }
        guard let tokens = tape.tokens else { throw JSONTape.fault(at: 0, "nothing") }
        return try body(JSONNode(token: UnsafePointer(tokens), tokens: tokens, text: text))
    }
}

/// A value of a text that is being read, valid inside `JSONDocument.read`.
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

    /// The value's text as it came, borrowed.
    package var source: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: text[Int(token.pointee.start)..<Int(token.pointee.end)])
    }

    private var span: JSONSpan {
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

    /// A number that is written without fraction and exponent, and fits. -0 is 0.
    package var integer: Int64? { span.integer }

    /// Any number: the nearest `Double`, nil for what is beyond all of them, such as 1e400.
    package var double: Double? {
        token.pointee.kind == .number ? JSONNumber.double(source) : nil
    }

    package var string: String? {
        withString { String(decoding: $0, as: UTF8.self) }
    }

    /// Calls `body` with a string's bytes: those of the text where it has no escape.
    /// - Returns: nil if the value is not a string.
    package func withString<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result? {
        span.withString(body)
    }

    /// An array's elements; none of what is no array.
    package var elements: Elements {
        Elements(of: token.pointee.kind == .array ? self : nil)
    }

    /// An object's members in their order, with all that have one name; none of what is no object.
    package var members: Members {
        Members(of: token.pointee.kind == .object ? self : nil)
    }

    fileprivate func node(at index: UInt32) -> JSONNode {
        JSONNode(token: tokens + Int(index), tokens: tokens, text: text)
    }

    /// The index of the first token inside it.
    fileprivate var first: UInt32 { UInt32(token - tokens) + 1 }
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
