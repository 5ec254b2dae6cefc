extension JSONValue {
    /// Appends the value as compact text (RFC 8259), as JavaScript's `JSON.stringify` writes it: no
    /// blanks, members in their order, U+2028 and U+2029 unescaped. A number is written with the
    /// shortest digits that parse to the same value. One without a fraction, such as 1.0, is
    /// written as 1, and so would be parsed as an integer. Unlike in JavaScript, -0 keeps its sign.
    /// - Throws: `.invalidArgument` for an infinite number or NaN, and for nesting deeper than 512,
    ///   which could not be parsed again. Nothing is appended then.
    public func write(to bytes: inout [UInt8]) throws(RealtimeError) {
        let count = bytes.count
        do throws(RealtimeError) {
            try append(to: &bytes, depth: 0)
        } catch {
            bytes.removeSubrange(count...)
            throw error
        }
    }

    /// The value as compact text, see `write(to:)`.
    public var text: String {
        get throws(RealtimeError) {
            var bytes: [UInt8] = []
            try write(to: &bytes)
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    private func append(to bytes: inout [UInt8], depth: Int) throws(RealtimeError) {
        switch self {
        case .null: bytes.append(contentsOf: "null".utf8)
        case .bool(let value): bytes.append(contentsOf: (value ? "true" : "false").utf8)
        case .integer(let value): bytes.append(contentsOf: value.description.utf8)
        case .number(let value):
            guard value.isFinite else {
                throw RealtimeError(.invalidArgument, "JSON cannot represent the number \(value)")
            }
            JSONNumber.write(value, to: &bytes)
        case .string(let text): JSONString.write(text, to: &bytes)
        case .array(let elements):
            let depth = try JSONValue.inside(depth)
            bytes.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                try element.append(to: &bytes, depth: depth)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let object):
            let depth = try JSONValue.inside(depth)
            bytes.append(UInt8(ascii: "{"))
            for (index, member) in object.members.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                JSONString.write(member.name, to: &bytes)
                bytes.append(UInt8(ascii: ":"))
                try member.value.append(to: &bytes, depth: depth)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }

    private static func inside(_ depth: Int) throws(RealtimeError) -> Int {
        guard depth < JSONDocument.greatestDepth else {
            throw RealtimeError(
                .invalidArgument, "JSON nested deeper than \(JSONDocument.greatestDepth)")
        }
        return depth + 1
    }
}
