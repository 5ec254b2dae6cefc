/// Encoded bodies: every step is bounded, and the result is the same whole and in pieces.
func fuzzContentDecoder(_ input: consuming Input) {
    let codings = [
        "gzip", "deflate", "br", "zstd", "gzip, gzip", "gzip, br", "zstd, deflate",
        "br, zstd, gzip",
    ]
    let coding = codings[Int(input.byte()) % codings.count]
    let split = input.byte()
    let room = 1 + Int(input.byte()) * 16
    let bytes = input.rest

    let whole = decode([bytes], coding, room: 64 << 10)
    let pieces = decode(bytes.pieces(by: split), coding, room: room)
    // libzstd 1.5.4 accepts an empty frame with an RLE block as a whole, but not in pieces.
    let isEmptyFrame = coding.contains("zstd") && whole.bytes.isEmpty && pieces.bytes.isEmpty
    require(
        whole.isGood == pieces.isGood || isEmptyFrame,
        "whole and in pieces differ in what is wrong")
    // A decoder that fails may lose bytes that it has decoded but not yet written.
    let count = min(whole.bytes.count, pieces.bytes.count)
    require(
        whole.bytes.prefix(count) == pieces.bytes.prefix(count)
            && (!whole.isGood || whole.bytes.count == pieces.bytes.count),
        "whole and in pieces decode to different bytes")
}

private struct DecodedBody {
    var bytes: [UInt8] = []
    var isGood = false
}

private func decode(
    _ pieces: [UnsafeRawBufferPointer], _ coding: String, room: Int
) -> DecodedBody {
    guard let decoder = ContentDecoder(contentEncoding: [coding]) else { fatalError("no decoder") }
    let output = UnsafeMutableRawBufferPointer.allocate(byteCount: room, alignment: 16)
    defer { output.deallocate() }
    var body = DecodedBody()
    do throws(ContentDecoder.Failure) {
        for piece in pieces {
            var rest = piece
            while !rest.isEmpty || decoder.hasMore {
                let before = rest.count
                let step = try decoder.decode(rest, into: output)
                require(
                    step.consumed <= before && step.produced <= room, "more than there was room for"
                )
                require(
                    step.consumed + step.produced > 0 || !decoder.hasMore || coding.contains(","),
                    "a step without progress asks for another")
                rest = UnsafeRawBufferPointer(rebasing: rest[step.consumed...])
                body.bytes += output[..<step.produced]
                // A bomb: this is enough of it.
                if body.bytes.count > 1 << 20 { return body }
            }
        }
        try decoder.finish()
        body.isGood = true
    } catch {}
    return body
}
