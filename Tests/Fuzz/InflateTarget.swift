/// Compressed messages: they respect their limits, give the same whole and in pieces, and the
/// deflater's output inflates to its input.
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
        // A second message uses the window, or the broken state, that the first one left.
        _ = receiver.message(bytes, size: size)
    }
    // In one call zlib can refer back to the whole output, in pieces only to the window; and later
    // pieces may reduce a ratio that is too large at first.
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
        require(result == .success(Array(bytes)), "the message did not survive a round trip")
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
