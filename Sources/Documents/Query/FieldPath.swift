import Wire

/// A dotted path into documents, such as `scores.0.n`. Its parts name fields of objects; parts
/// made of digits are also the indexes of array elements.
struct FieldPath: Sendable {
    struct Part: Sendable {
        let name: String
        let bytes: [UInt8]
        /// The value of a part made of digits, at most `Int.max`; nil for other parts.
        let index: Int?
        /// Whether the index has leading zeros. Then it leads to no element in a query (as in
        /// JavaScript), but a modifier takes it.
        let hasLeadingZeros: Bool

        init(_ bytes: [UInt8]) {
            self.bytes = bytes
            name = String(decoding: bytes, as: UTF8.self)
            index = FieldPath.index(bytes)
            hasLeadingZeros = bytes.count > 1 && bytes[0] == UInt8(ascii: "0")
        }

        func `is`(_ name: StaticString) -> Bool { self.name.hasBytes(name) }
    }

    /// The most parts of a path.
    static let maximumParts = 100
    /// The most parts made of digits. A path can lead to one place in several ways, because such
    /// a part is both an index and the name of a field, and the ways double with every such part.
    static let maximumIndexes = 16

    /// With its dots.
    let text: String
    let parts: [Part]
    /// Whether the path is that of a document's id or below.
    let isID: Bool

    /// - Throws: `.invalidArgument` if the path has too many parts.
    init(_ text: String) throws(RealtimeError) {
        let parts = text.utf8.split(
            separator: UInt8(ascii: "."), omittingEmptySubsequences: false
        ).map { Part(Array($0)) }
        guard parts.count <= FieldPath.maximumParts else {
            throw RealtimeError(
                .invalidArgument,
                "a path has \(parts.count) parts, at most \(FieldPath.maximumParts) are possible")
        }
        guard parts.count(where: { $0.index != nil }) <= FieldPath.maximumIndexes else {
            throw RealtimeError(
                .invalidArgument,
                "the path \(text) has more than \(FieldPath.maximumIndexes) array indexes")
        }
        self.text = text
        self.parts = parts
        isID = parts[0].is("_id")
    }

    private static func index(_ bytes: [UInt8]) -> Int? {
        guard !bytes.isEmpty else { return nil }
        var index = 0
        for byte in bytes {
            guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
            let (product, isTooLarge) = index.multipliedReportingOverflow(by: 10)
            let (sum, isBeyond) = product.addingReportingOverflow(Int(byte - UInt8(ascii: "0")))
            index = isTooLarge || isBeyond ? Int.max : sum
        }
        return index
    }
}

extension String {
    /// Whether the name begins with the character of operators.
    var isOperatorName: Bool { utf8.first == UInt8(ascii: "$") }
}
