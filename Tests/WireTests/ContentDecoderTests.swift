import CShims
import Testing

@testable import Wire

private let text = "hello hello hello hello, realtime\n"

private enum Coded {
    static let gzip = hex(
        "1f8b08000000000000ffcb48cdc9c957c8402775148a5213734a327353b900872d98b122000000")
    /// With an extra field, a name, a comment and the header's CRC.
    static let gzipFields = hex(
        "1f8b081e0000000000ff03006578746e616d6500636f6d6d656e74000a20"
            + "cb48cdc9c957c8402775148a5213734a327353b900872d98b122000000")
    static let emptyGzip = hex("1f8b08000000000000ff03000000000000000000")
    static let zlib = hex("78dacb48cdc9c957c8402775148a5213734a327353b900dd1e0c5a")
    static let raw = hex("cb48cdc9c957c8402775148a5213734a327353b900")
    static let brotli = hex(
        "1b2100e88d946ee622708e754b926e2d36c3e0f0284b456491a70e5af6e02cf19704")
    /// With a checksum.
    static let zstd = hex(
        "28b52ffd2422bd00008868656c6c6f202c207265616c74696d650a0100994b1165013815")
    static let zstdWindow8MiB = hex(
        "28b52ffd0068bd00008868656c6c6f202c207265616c74696d650a0100994b11")
    static let zstdWindow16MiB = hex(
        "28b52ffd0070bd00008868656c6c6f202c207265616c74696d650a0100994b11")
    /// A skippable frame of four bytes.
    static let zstdSkippable = hex("502a4d180400000001020304")
    static let gzipThenBrotli = hex(
        "0b13801f8b08000000000000ffcb48cdc9c957c8402775148a5213734a327353b900872d98b12200000003")
    // Everything so far is flushed, and more may follow.
    static let flushedGzip = hex(
        "1f8b0800000000000203ca48cdc9c957c8402775148a5213734a327353b900000000ffff")
    static let flushedBrotli = hex(
        "8b1000e88d946ee622708e754b926e2d36c3e0f0284b456491a70e5af6e02cf1976400")
    static let flushedZstd = hex(
        "28b52ffd0058bc00008868656c6c6f202c207265616c74696d650a0100994b11")
    /// 16 MiB of zeros.
    static let brotliBomb = hex("cbffff3ff82700e2b14020f7fe8fffff7ff04f00c4611180eefddf")
    /// 1,000 empty gzip members.
    static let emptyMembers = hex(
        "1f8b08000000000000ffedc8b1090030080030a18b5f78708fae20f842a7644cdd8cf14eac72ce39"
            + "e79c73ce39e79c73ce39e79c73ce39e79c73ce39e79c73ce39e79c73ce39e79c73ce39e79c73ce39"
            + "e79c73ce39f7fd1af9b64ff7204e0000")
}

private func hex(_ digits: String) -> [UInt8] {
    let digits = Array(digits.utf8).map { UInt8($0 < 0x3A ? $0 - 0x30 : $0 - 0x57) }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

private struct Decoded: Equatable {
    var text: String
    var failure: ContentDecoder.Failure?
}

/// Decodes a body that arrives in these pieces.
/// - Parameter room: for output, per call.
private func decode(
    _ pieces: [[UInt8]], _ codings: [String], room: Int = 4096, ends: Bool = true
) throws -> Decoded {
    let decoder = try #require(ContentDecoder(contentEncoding: codings))
    var output = [UInt8](repeating: 0, count: room)
    var decoded: [UInt8] = []
    var failure: ContentDecoder.Failure?
    do throws(ContentDecoder.Failure) {
        for piece in pieces {
            var rest = piece[...]
            while !rest.isEmpty || decoder.hasMore {
                let step = try decode(rest, into: &output, by: decoder)
                rest = rest.dropFirst(step.consumed)
                decoded += output[..<step.produced]
            }
        }
        if ends { try decoder.finish() }
    } catch { failure = error }
    return Decoded(text: String(decoding: decoded, as: UTF8.self), failure: failure)
}

private func decode(
    _ input: ArraySlice<UInt8>, into output: inout [UInt8], by decoder: ContentDecoder
) throws(ContentDecoder.Failure) -> ContentDecoder.Step {
    let result = input.withUnsafeBytes { input in
        output.withUnsafeMutableBytes { output in
            Result { () throws(ContentDecoder.Failure) in
                try decoder.decode(input, into: output)
            }
        }
    }
    return try result.get()
}

/// Decodes the body whole, in every two pieces, and byte by byte; with much room and with one byte.
private func decodeInAllWays(_ bytes: [UInt8], _ codings: [String]) throws -> Decoded {
    let whole = try decode([bytes], codings)
    for pieces in splits(bytes) { #expect(try decode(pieces, codings) == whole) }
    #expect(try decode([bytes], codings, room: 1) == whole)
    return whole
}

struct ContentDecoderTests {
    @Test(arguments: [
        ("gzip", Coded.gzip), ("x-gzip", Coded.gzip), ("GZIP", Coded.gzipFields),
        ("deflate", Coded.zlib), ("deflate", Coded.raw), ("br", Coded.brotli),
        ("zstd", Coded.zstd), ("zstd", Coded.zstdWindow8MiB), ("gzip, br", Coded.gzipThenBrotli),
        (" identity ,, gzip, none", Coded.gzip), ("utf-8, gzip", Coded.gzip),
        ("gzip, UTF-8", Coded.gzip), ("foo, gzip", Coded.gzip), ("br, foo, gzip", Coded.gzip),
        ("foo, gzip, us-ascii, br", Coded.gzipThenBrotli),
    ])
    func decodes(coding: String, bytes: [UInt8]) throws {
        #expect(try decodeInAllWays(bytes, [coding]) == Decoded(text: text))
    }

    @Test func severalFields() throws {
        #expect(try decode([Coded.gzipThenBrotli], ["gzip", "br"]) == Decoded(text: text))
    }

    /// Data that a server has flushed is delivered, although more follows.
    @Test(arguments: [
        ("gzip", Coded.flushedGzip), ("br", Coded.flushedBrotli), ("zstd", Coded.flushedZstd),
    ])
    func flushed(coding: String, bytes: [UInt8]) throws {
        #expect(try decode([bytes], [coding], ends: false).text == text)
        #expect(try decodeInAllWays(bytes, [coding]).failure == .cutShort(coding))
    }

    @Test(arguments: [
        Coded.gzip + Coded.gzip, Coded.gzip + Coded.emptyGzip + Coded.gzipFields,
        Coded.gzip + [0, 0, 0] + Coded.gzip + [0, 0],
    ])
    func gzipMembers(bytes: [UInt8]) throws {
        #expect(try decodeInAllWays(bytes, ["gzip"]) == Decoded(text: text + text))
    }

    @Test func zstdFrames() throws {
        let frames = Coded.zstd + Coded.zstdSkippable + Coded.zstd
        #expect(try decodeInAllWays(frames, ["zstd"]) == Decoded(text: text + text))
    }

    @Test(arguments: [
        ("gzip", Coded.gzip), ("gzip", Coded.gzip + Coded.gzip), ("deflate", Coded.zlib),
        ("deflate", Coded.raw), ("br", Coded.brotli), ("zstd", Coded.zstd),
    ])
    func cutShort(coding: String, bytes: [UInt8]) throws {
        // After the first member of gzip it is complete.
        let whole = bytes.count > Coded.gzip.count ? Coded.gzip.count : bytes.count
        for count in 1..<bytes.count where count != whole {
            #expect(try decode([Array(bytes[..<count])], [coding]).failure == .cutShort(coding))
        }
    }

    @Test func nothingAtAll() throws {
        let decoder = try #require(ContentDecoder(contentEncoding: ["gzip, br"]))
        try decoder.finish()
        #expect(ContentDecoder(contentEncoding: []) == nil)
        #expect(ContentDecoder(contentEncoding: ["identity", "", " , none"]) == nil)
    }

    @Test(arguments: [
        (31, "gzip CRC does not match"), (36, "gzip length does not match"),
        (0, "gzip data does not begin as such"), (2, "gzip data does not begin as such"),
        (3, "gzip data: unknown header flags set"), (10, "gzip data: invalid block type"),
    ])
    func damagedGzip(place: Int, what: String) throws {
        var bytes = Coded.gzip
        bytes[place] = 0xEE
        #expect(try decodeInAllWays(bytes, ["gzip"]).failure == .damaged(what))
    }

    @Test func damagedHeaders() throws {
        var bytes = Coded.gzipFields
        bytes[28] ^= 1
        #expect(
            try decodeInAllWays(bytes, ["gzip"]).failure
                == .damaged("gzip header CRC does not match"))
        // A preset dictionary.
        #expect(
            try decodeInAllWays(hex("78bb00000001") + Coded.raw, ["deflate"]).failure
                == .damaged("deflate data needs a dictionary"))
        #expect(
            try decode([Coded.zstdWindow16MiB], ["zstd"]).failure
                == .damaged("zstd window is larger than 8 MiB"))
    }

    @Test(arguments: ["deflate", "br", "zstd"])
    func damaged(coding: String) throws {
        let bytes = ["deflate": Coded.zlib, "br": Coded.brotli, "zstd": Coded.zstd][coding] ?? []
        for place in bytes.indices {
            var damaged = bytes
            damaged[place] ^= 0xFF
            let decoded = try decode([damaged], [coding])
            // In br a damaged flag or padding bit may make no difference; damage is never decoded
            // as correct text otherwise.
            #expect(decoded.failure != nil || decoded.text == text || coding == "br")
        }
    }

    /// All data before the damage is delivered.
    @Test func dataBeforeDamageIsDelivered() throws {
        let decoded = try decodeInAllWays(
            Coded.flushedGzip + [UInt8](repeating: 0xFF, count: 20), ["gzip"])
        #expect(
            decoded == Decoded(text: text, failure: .damaged("gzip data: invalid block type")))
    }

    @Test(arguments: [
        ("gzip", Coded.gzip), ("deflate", Coded.zlib), ("br", Coded.brotli),
    ])
    func bytesAfterTheEnd(coding: String, bytes: [UInt8]) throws {
        let decoded = try decodeInAllWays(bytes + Array("<html>".utf8), [coding])
        let what = "\(coding) data is followed by something else"
        #expect(decoded == Decoded(text: text, failure: .damaged(what)))
    }

    /// As libcurl does, because servers append the checksum of zlib's format.
    @Test func checksumAfterRawDeflate() throws {
        #expect(try decodeInAllWays(Coded.raw + [1, 2, 3, 4], ["deflate"]) == Decoded(text: text))
        #expect(
            try decode([Coded.raw + [1, 2, 3, 4, 5]], ["deflate"]).failure
                == .damaged("deflate data is followed by something else"))
    }

    @Test func unsupported() throws {
        // As browsers do: the body is passed on as it came.
        for names in [["utf-8"], ["compress"], ["gzip, foo"], ["gzip", "foo", "UTF-8"]] {
            #expect(ContentDecoder(contentEncoding: names) == nil)
        }
        #expect(try decode([[1]], ["gzip,gzip,gzip,gzip"]).failure == .tooMany(4))
        #expect(ContentDecoder.Failure.tooMany(4).isFinal)
        #expect(!ContentDecoder.Failure.cutShort("gzip").isFinal)
        let error = ContentDecoder.Failure.unsupported("a\u{7}b").error(from: "host:80")
        #expect(ContentDecoder.Failure.unsupported("br").isFinal)
        #expect(error.code == .protocolViolation)
        #expect(
            error.message == "host:80 answered with the content coding \"a\\u{7}b\", which is not"
                + " supported (deflate, gzip, br, zstd)")
    }

    /// One call fills its output, and does not work without end if there is none.
    @Test func bombs() throws {
        let decoder = try #require(ContentDecoder(contentEncoding: ["br"]))
        var output = [UInt8](repeating: 1, count: 64 << 10)
        var rest = Coded.brotliBomb[...]
        var produced = 0
        var calls = 0
        while !rest.isEmpty || decoder.hasMore {
            let step = try decode(rest, into: &output, by: decoder)
            rest = rest.dropFirst(step.consumed)
            produced += step.produced
            calls += 1
        }
        try decoder.finish()
        #expect(produced == 16 << 20)
        #expect(calls >= 256)
        #expect(try decode([Coded.emptyMembers], ["gzip", "gzip"]) == Decoded(text: ""))
    }

    @Test func offered() {
        // All libraries are installed where the tests run.
        #expect(ContentDecoder.acceptedCodings == "deflate, gzip, br, zstd")
    }
}
