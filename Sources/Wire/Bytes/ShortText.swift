/// A UTF-8 text of at most 24 bytes in place: without an allocation, and copied without counting
/// references.
struct ShortText: Hashable, Sendable {
    /// The bytes in memory order, then zeros.
    private var words: (UInt64, UInt64, UInt64) = (0, 0, 0)
    private let length: UInt8

    static let greatestCount = 24

    /// nil for a text that is too long.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count <= ShortText.greatestCount else { return nil }
        length = UInt8(bytes.count)
        withUnsafeMutableBytes(of: &words) { $0.copyMemory(from: bytes) }
    }

    var count: Int { Int(length) }

    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeBytes(of: words) {
            body(UnsafeRawBufferPointer(rebasing: $0[..<Int(length)]))
        }
    }

    static func == (first: ShortText, second: ShortText) -> Bool {
        first.length == second.length && first.words == second.words
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
        hasher.combine(words.2)
        hasher.combine(length)
    }
}
