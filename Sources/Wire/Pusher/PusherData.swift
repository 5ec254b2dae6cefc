/// The `data` of a message, borrowed (docs/pusher-rules.md, U2).
package struct PusherData {
    package enum Kind: Int32, Sendable {
        /// The member is missing or null.
        case none
        /// A JSON string, which usually contains JSON.
        case text
        /// Any other JSON value.
        case json
    }

    package let kind: Kind
    /// A string's content, or another value as compact JSON text; empty if there is none.
    package let bytes: UnsafeRawBufferPointer

    private static let maximumTokens = JSONDocument.tokens(in: 16 << 20)

    package init(_ kind: Kind, _ bytes: UnsafeRawBufferPointer) {
        self.kind = kind
        self.bytes = bytes
    }

    package static var none: PusherData {
        PusherData(.none, UnsafeRawBufferPointer(start: .ofNothing, count: 0))
    }

    /// What the data means: the value of a text that contains JSON, otherwise the text itself; nil
    /// if there is none.
    package var value: JSONValue? {
        guard kind != .none else { return nil }
        if let value = try? JSONValue(parsing: bytes) { return value }
        return .string(String(decoding: bytes, as: UTF8.self))
    }

    /// Reads a payload that must be JSON, whether it came as a string or not.
    /// - Throws: `.protocolViolation` if there is none or it is not JSON; `.tooLarge` for more
    ///   values than a message may have by default; and what `body` throws.
    func read<Result>(
        _ body: (JSONNode) throws(RealtimeError) -> Result
    ) throws(RealtimeError) -> Result {
        guard kind != .none else {
            throw RealtimeError(.protocolViolation, "a Pusher message has no data")
        }
        var document = JSONDocument()
        return try document.read(bytes, maximumTokens: PusherData.maximumTokens, body)
    }
}

extension JSONNode {
    /// A user's id, which some servers write as a number; nil if it is neither, or empty.
    var idText: String? {
        switch kind {
        case .string: string.flatMap { $0.isEmpty ? nil : $0 }
        case .number: String(decoding: source, as: UTF8.self)
        case .null, .bool, .array, .object: nil
        }
    }

    /// The ids in an array, or the values of an object, which is an array of PHP with gaps; others
    /// are left out.
    var idTexts: [String] {
        var ids: [String] = []
        for element in elements {
            if let id = element.idText { ids.append(id) }
        }
        for member in members {
            if let id = member.value.idText { ids.append(id) }
        }
        return ids
    }
}
