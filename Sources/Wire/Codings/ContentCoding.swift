import CShims

/// A content coding that can be decoded (RFC 9110 §8.4.1).
enum ContentCoding: String, CaseIterable {
    // In the order in which they are offered.
    case deflate
    case gzip
    case brotli = "br"
    case zstd

    /// - Parameter name: from Content-Encoding, in any case; the aliases of gzip count, too.
    init?(name: String) {
        let isAlias = name.equalsIgnoringASCIICase("x-gzip")
        let known = ContentCoding.allCases.first { name.equalsIgnoringASCIICase($0.rawValue) }
        guard let coding = isAlias ? .gzip : known, coding.isAvailable else { return nil }
        self = coding
    }

    /// zlib is linked; the libraries of the others are looked for when this is first read.
    private var isAvailable: Bool {
        switch self {
        case .deflate, .gzip: true
        case .brotli: shim_brotli_is_available()
        case .zstd: shim_zstd_is_available()
        }
    }

    /// Those that can be decoded in this process, as Accept-Encoding lists them.
    static let available =
        allCases.filter { $0.isAvailable }.map { $0.rawValue }.joined(separator: ", ")

    /// How much work a byte of input may be, in bytes of output. In br a few bytes can describe
    /// hundreds of prefix codes (RFC 7932 §3): 10 µs for each byte.
    var inputCost: Int {
        switch self {
        case .deflate, .gzip, .zstd: 1
        case .brotli: 64
        }
    }

    /// A decoder for one body; nil without memory.
    func makeStream() -> (any CodedStream)? {
        switch self {
        case .gzip: ZlibStream(isGzip: true)
        case .deflate: ZlibStream(isGzip: false)
        case .brotli: BrotliStream()
        case .zstd: ZstdStream()
        }
    }
}

/// The decoder of one coding. It consumes input and writes output as far as both reach, keeps what
/// it needs of either, and can be fed in pieces of any size.
protocol CodedStream: AnyObject {
    /// Never called again after a failure.
    func decode(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) -> CodedStep
    /// The input so far is complete: it may end here.
    var isWhole: Bool { get }
}

struct CodedStep {
    var consumed = 0
    var produced = 0
    /// What is wrong with the input behind what was produced.
    var fault: String?
}
