/// Compressed messages: bounded by their limits whatever comes, the same whole and in pieces, and
/// what the deflater makes of any bytes comes back.
func fuzzInflate(_ input: consuming Input) {
    let windowBits = 8 + Int(input.byte()) % 8
    let options = input.byte()
    let noContext = options & 1 != 0
    let messageLimit = options & 2 != 0 ? 0 : Int(input.byte()) * 100 + 1
    let ratioLimit = options & 4 != 0 ? 0 : Int(input.byte()) + 1
    let size = Int(input.byte()) + 1
    let bytes = input.rest

    var results: [Result<[UInt8], Inflater.Failure>] = []
    for size in [max(bytes.count, 1), size] {
        var receiver = Receiver(windowBits: windowBits, noContextTakeover: noContext)
        receiver.messageLimit = messageLimit
        receiver.ratioLimit = ratioLimit
        results.append(receiver.message(bytes, size: size))
        // A second message behind it finds the window, or the wreck, that the first one left.
        _ = receiver.message(bytes, size: size)
    }
    // In one call zlib can look back over the whole output, in pieces over the window alone; and
    // a ratio that is too large at first may be made good by later pieces.
    if windowBits == 15, ratioLimit == 0 {
        require(results[0] == results[1], "whole and in pieces of \(size) differ")
    }
    roundTrip(bytes, windowBits: max(windowBits, 9), noContext: noContext, level: options >> 4)
}

private func roundTrip(
    _ bytes: UnsafeRawBufferPointer, windowBits: Int, noContext: Bool, level: UInt8
) {
    guard
        var deflater = try? Deflater(
            level: 1 + Int(level) % 9, windowBits: windowBits, noContextTakeover: noContext)
    else { fatalError("no deflater") }
    var receiver = Receiver(windowBits: windowBits, noContextTakeover: noContext)
    for _ in 0..<2 {
        var compressed = ByteBuffer()
        guard (try? deflater.deflate(bytes, into: &compressed)) != nil else {
            fatalError("not compressed")
        }
        let result = receiver.message(compressed.readable, size: max(compressed.count, 1))
        require(result == .success(Array(bytes)), "the message did not come back")
    }
}

private struct Receiver: ~Copyable {
    private var inflater: Inflater
    var messageLimit = 0
    var ratioLimit = 0

    init(windowBits: Int, noContextTakeover: Bool) {
        guard
            let inflater = try? Inflater(
                windowBits: windowBits, noContextTakeover: noContextTakeover)
        else { fatalError("no inflater") }
        self.inflater = inflater
    }

    mutating func message(
        _ bytes: UnsafeRawBufferPointer, size: Int
    ) -> Result<[UInt8], Inflater.Failure> {
        var output = ByteBuffer()
        let pieces = bytes.pieces(of: size)
        for (index, piece) in pieces.enumerated() {
            do throws(Inflater.Failure) {
                _ = try inflater.inflate(
                    piece, isFinal: index == pieces.count - 1, into: &output,
                    messageLimit: messageLimit, ratioLimit: ratioLimit)
            } catch {
                checkBounds(output.count, bytes.count)
                return .failure(error)
            }
        }
        checkBounds(output.count, bytes.count)
        return .success(Array(output.readable))
    }

    private func checkBounds(_ count: Int, _ wire: Int) {
        require(messageLimit == 0 || count <= messageLimit + 1, "\(count) bytes of \(messageLimit)")
        let most = max(Inflater.ratioFreeBytes, wire * ratioLimit)
        require(ratioLimit == 0 || count <= most + 1, "\(count) bytes from \(wire)")
    }
}
