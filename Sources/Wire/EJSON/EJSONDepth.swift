// A limit for values that programs build: writing, comparing and matching them recurses.
extension EJSON {
    /// How deep arrays, objects and custom values may be nested: as deep as in a text by default.
    package static let maximumDepth = 128

    /// - Parameter name: what the value is, for the message.
    /// - Throws: `.invalidArgument` if it is nested deeper than `maximumDepth`.
    package func checkDepth(_ name: StaticString) throws(RealtimeError) {
        guard isTooDeep else { return }
        throw RealtimeError(
            .invalidArgument, "\(name) is nested deeper than \(EJSON.maximumDepth) levels")
    }

    package var isTooDeep: Bool { isDeeper(than: EJSON.maximumDepth) }

    /// Whether arrays, objects and custom values are nested deeper. Looks no deeper than `limit`.
    package func isDeeper(than limit: Int) -> Bool {
        switch self {
        case .null, .bool, .number, .string, .date, .bytes, .objectID, .decimal, .pattern: false
        case .array(let elements):
            limit == 0 || elements.contains { $0.isDeeper(than: limit - 1) }
        case .object(let object):
            limit == 0 || object.fields.contains { $0.value.isDeeper(than: limit - 1) }
        case .custom(let custom): limit == 0 || custom.value.isDeeper(than: limit - 1)
        }
    }
}
