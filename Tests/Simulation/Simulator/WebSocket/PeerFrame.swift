/// A frame as the scripted peer writes it, RFC 6455 §5.2: every field can be wrong.
struct PeerFrame {
    /// How the length is written.
    enum LengthForm {
        case shortest, sixteenBits, sixtyFourBits
        /// 64 bits, the top one set.
        case topBit
    }

    var opcode: UInt8
    var isFinal = true
    /// RSV1 is 4, RSV2 2, RSV3 1.
    var reserved: UInt8 = 0
    var payload: [UInt8] = []
    var lengthForm = LengthForm.shortest
    var isMasked = false
    /// A length to claim in place of the payload's.
    var claimedLength: Int?

    var bytes: [UInt8] {
        let length = claimedLength ?? payload.count
        var bytes = [(isFinal ? 0x80 : 0) | reserved << 4 | opcode]
        let mask: UInt8 = isMasked ? 0x80 : 0
        var form = lengthForm
        if form == .shortest, length > 125 {
            form = length > 65_535 ? .sixtyFourBits : .sixteenBits
        }
        switch form {
        case .shortest: bytes.append(mask | UInt8(length))
        case .sixteenBits:
            bytes += [mask | 126] + PeerFrame.digits(UInt64(length), 2)
        case .sixtyFourBits: bytes += [mask | 127] + PeerFrame.digits(UInt64(length), 8)
        case .topBit: bytes += [mask | 127] + PeerFrame.digits(UInt64(length) | 1 << 63, 8)
        }
        // A key of zeros leaves the bytes unchanged.
        if isMasked { bytes += [0, 0, 0, 0] }
        return bytes + payload
    }

    /// The whole message as frames: `count` fragments of random sizes, some possibly empty.
    static func message(
        _ opcode: UInt8, _ payload: [UInt8], isCompressed: Bool, fragments count: Int,
        _ random: inout Random
    ) -> [PeerFrame] {
        let cuts = (1..<max(count, 1)).map { _ in random.below(payload.count + 1) }.sorted()
        let borders = [0] + cuts + [payload.count]
        return (0..<(borders.count - 1)).map { index in
            PeerFrame(
                opcode: index == 0 ? opcode : 0, isFinal: index == borders.count - 2,
                reserved: index == 0 && isCompressed ? 4 : 0,
                payload: Array(payload[borders[index]..<borders[index + 1]]))
        }
    }

    static func close(_ code: UInt16?, _ reason: [UInt8] = []) -> PeerFrame {
        PeerFrame(opcode: 8, payload: code.map { digits(UInt64($0), 2) + reason } ?? [])
    }

    private static func digits(_ value: UInt64, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * (count - 1 - $0))) }
    }
}
