/// A message as JSON: `{"id": …, "event": …, "data": …}`, or a batch of them
/// (sse-poll-rest.md, B6).
package struct SpreadbotEnvelope: Equatable {
    /// A string, or an integer in decimal; nil for none.
    package var id: [UInt8]?
    package let event: [UInt8]?
    /// A string's text, or any other value as JSON without blanks; nil for an element of a batch
    /// that is no message, whose id counts all the same.
    package let data: [UInt8]?

    package static let batchType = "application/vnd.spreadbot.batch+json"

    private init(_ node: JSONNode) {
        data = node["data"].map(SpreadbotEnvelope.bytes)
        event = node["event"]?.string.flatMap { $0.isEmpty ? nil : Array($0.utf8) }
        let id = node["id"].map(SpreadbotEnvelope.id)
        self.id = id.flatMap { $0.withUnsafeBytes(SpreadbotID.isCursor) ? $0 : nil }
    }

    private static func id(_ node: JSONNode) -> [UInt8] {
        if let bytes = node.withString({ Array($0) }) { return bytes }
        if let integer = node.integer { return Array(String(integer).utf8) }
        // Digits alone are an integer too when no type of ours holds it.
        let isDigits = node.source.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
        return isDigits ? Array(node.source) : []
    }

    private static func bytes(_ node: JSONNode) -> [UInt8] {
        if let bytes = node.withString({ Array($0) }) { return bytes }
        var bytes: [UInt8] = []
        node.writeSource(to: &bytes)
        return bytes
    }

    /// - Returns: nil for what is no JSON object with a member `data`.
    package static func message(
        _ bytes: UnsafeRawBufferPointer
    ) -> SpreadbotEnvelope? {
        guard bytes.first(where: { !" \t\r\n".utf8.contains($0) }) == UInt8(ascii: "{") else {
            return nil
        }
        var document = JSONDocument()
        let envelope = try? document.read(bytes) { SpreadbotEnvelope($0) }
        return envelope?.data == nil ? nil : envelope
    }

    /// - Returns: the messages of `{"messages": [...]}` in order; nil for what is no batch.
    package static func batch(
        _ bytes: UnsafeRawBufferPointer
    ) -> [SpreadbotEnvelope]? {
        var document = JSONDocument()
        let messages = try? document.read(bytes) { root -> [SpreadbotEnvelope]? in
            guard let list = root["messages"], case .array = list.kind else { return nil }
            return list.elements.map { SpreadbotEnvelope($0) }
        }
        return messages ?? nil
    }
}
