import CShims

/// A content coding that the library can decode (RFC 9110 §8.4.1).
enum ContentCoding: String, CaseIterable {
    // In the order in which they are offered.
    case deflate
    case gzip
    case brotli = "br"
    case zstd

    /// - Parameter name: from Content-Encoding, in any case; x-gzip is an alias of gzip.
    init?(name: String) {
        let isAlias = name.equalsIgnoringASCIICase("x-gzip")
        let known = ContentCoding.allCases.first { name.equalsIgnoringASCIICase($0.rawValue) }
        guard let coding = isAlias ? .gzip : known else { return nil }
        self = coding
    }

    /// zlib is linked. The libraries of the others are loaded when this is first read.
    var isAvailable: Bool {
        switch self {
        case .deflate, .gzip: true
        case .brotli: shim_brotli_is_available()
        case .zstd: shim_zstd_is_available()
        }
    }

    /// The codings that this process can decode, as a value for Accept-Encoding.
    static let available =
        allCases.filter { $0.isAvailable }.map { $0.rawValue }.joined(separator: ", ")

    /// The most work that a byte of input can cause, in bytes of output. In br a few bytes can
    /// describe hundreds of prefix codes (RFC 7932 §3), which takes 10 µs per byte.
    var inputCost: Int {
        switch self {
        case .deflate, .gzip, .zstd: 1
        case .brotli: 64
        }
    }

    /// Makes a decoder for one body; nil if memory is short.
    func makeStream() -> (any CodedStream)? {
        switch self {
        case .gzip: ZlibStream(isGzip: true)
        case .deflate: ZlibStream(isGzip: false)
        case .brotli: BrotliStream()
        case .zstd: ZstdStream()
        }
    }
}
