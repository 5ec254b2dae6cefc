/// A way of breaking the protocol, and its close code by RFC 6455 §7.4.1.
enum Misbehaviour: CaseIterable {
    case reservedBit, rsv1WithoutExtension, rsv1OnContinuation, compressedControl
    case unknownOpcode, masked, lengthNotShortest, lengthTopBit
    case fragmentedControl, longControl, continuationFirst, messageInMessage
    case tooLargeFrame, tooLargeFragments, tooLargeInflated, bomb
    case invalidText, invalidTextInFragment, invalidTextCompressed, unfinishedCharacter
    case closeOfOneByte, closeReservedCode, closeReasonNotText
    case corruptDeflate, deflateInsideBlock

    /// Whether the session's agreement allows it.
    func isPossible(_ deal: Deal) -> Bool {
        switch self {
        case .rsv1WithoutExtension: !deal.deflates
        case .rsv1OnContinuation, .compressedControl, .invalidTextCompressed, .corruptDeflate,
            .deflateInsideBlock:
            deal.deflates
        case .tooLargeInflated: deal.deflates && deal.messageLimit > 0
        case .bomb: deal.windowBits > 8 && deal.inflateRatio > 0
        case .tooLargeFrame, .tooLargeFragments: deal.messageLimit > 0
        default: true
        }
    }

    var closeCode: UInt16 {
        switch self {
        case .tooLargeFrame, .tooLargeFragments, .tooLargeInflated, .bomb: 1009
        case .invalidText, .invalidTextInFragment, .invalidTextCompressed, .unfinishedCharacter,
            .closeReasonNotText, .corruptDeflate, .deflateInsideBlock:
            1007
        default: 1002
        }
    }

    /// The parts of the agreement that matter here.
    struct Deal {
        /// The server's window, 0 without compression.
        var windowBits = 0
        var deflates: Bool { windowBits > 0 }
        var messageLimit = 0
        var inflateRatio = 0
    }

    private static let notText: [[UInt8]] = [
        [0xFF], [0xC0, 0xAF], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0x80],
        [0xE2, 0x28, 0xA1], [0xF8, 0x88, 0x80, 0x80, 0x80],
    ]

    /// The frames that break the rule.
    func frames(
        _ deal: Deal, _ deflater: PeerDeflater?, _ random: inout Random
    ) -> [PeerFrame] {
        let control = random.pick([8, 9, 10] as [UInt8])
        let data = random.pick([1, 2] as [UInt8])
        switch self {
        case .reservedBit:
            let bits = random.pick([1, 2, 3] as [UInt8])
            return [PeerFrame(opcode: random.pick([data, control]), reserved: bits)]
        case .rsv1WithoutExtension: return [PeerFrame(opcode: data, reserved: 4)]
        case .rsv1OnContinuation:
            return [
                PeerFrame(opcode: data, isFinal: false), PeerFrame(opcode: 0, reserved: 4),
            ]
        case .compressedControl: return [PeerFrame(opcode: control, reserved: 4)]
        case .unknownOpcode:
            return [PeerFrame(opcode: random.pick([3, 4, 5, 6, 7, 11, 12, 13, 14, 15]))]
        case .masked:
            return [PeerFrame(opcode: random.pick([data, control]), isMasked: true)]
        case .lengthNotShortest:
            let wide = random.chance(50)
            return [
                PeerFrame(
                    opcode: data, payload: [UInt8](repeating: 97, count: random.below(100)),
                    lengthForm: wide ? .sixtyFourBits : .sixteenBits)
            ]
        case .lengthTopBit:
            return [
                PeerFrame(opcode: data, lengthForm: .topBit, claimedLength: random.below(1 << 40))
            ]
        case .fragmentedControl: return [PeerFrame(opcode: control, isFinal: false)]
        case .longControl:
            let count = random.within(126...300)
            return [PeerFrame(opcode: control, payload: [UInt8](repeating: 0, count: count))]
        case .continuationFirst: return [PeerFrame(opcode: 0, isFinal: random.chance(50))]
        case .messageInMessage:
            return [PeerFrame(opcode: data, isFinal: false), PeerFrame(opcode: data)]
        case .closeOfOneByte: return [PeerFrame(opcode: 8, payload: [3])]
        case .closeReservedCode:
            return [
                .close(random.pick([0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535]))
            ]
        case .closeReasonNotText: return [.close(1000, random.pick(Misbehaviour.notText))]
        case .tooLargeFrame, .tooLargeFragments, .tooLargeInflated, .bomb:
            return tooLarge(deal, deflater, &random)
        case .invalidText, .invalidTextInFragment, .invalidTextCompressed, .unfinishedCharacter:
            return notText(deflater, &random)
        case .corruptDeflate: return [PeerFrame(opcode: data, reserved: 4, payload: [0xFF, 0xFF])]
        case .deflateInsideBlock:
            // The head of a stored block of five bytes, and three of them.
            return [
                PeerFrame(
                    opcode: 2, reserved: 4, payload: [0, 5, 0, 0xFA, 0xFF, 1, 2, 3])
            ]
        }
    }

    private func tooLarge(
        _ deal: Deal, _ deflater: PeerDeflater?, _ random: inout Random
    ) -> [PeerFrame] {
        switch self {
        case .tooLargeFrame:
            // Its bytes are not needed: the length alone decides.
            let length = deal.messageLimit + random.pick([1, 2, 1000, 1 << 40])
            return [PeerFrame(opcode: 2, claimedLength: length)]
        case .tooLargeFragments:
            let first = [UInt8](repeating: 7, count: deal.messageLimit)
            return [
                PeerFrame(opcode: 2, isFinal: false, payload: first),
                PeerFrame(opcode: 0, payload: [7]),
            ]
        default:
            let size = self == .bomb ? 400_000 : deal.messageLimit + random.within(1...200)
            let bytes = [UInt8](repeating: 0, count: size)
            let payload = deflater?.compress(bytes, .plain) ?? []
            return [PeerFrame(opcode: 2, reserved: 4, payload: payload)]
        }
    }

    private func notText(_ deflater: PeerDeflater?, _ random: inout Random) -> [PeerFrame] {
        let bad = random.pick(Misbehaviour.notText)
        switch self {
        case .invalidTextInFragment:
            return [
                PeerFrame(opcode: 1, isFinal: false, payload: [97, 98] + bad),
                PeerFrame(opcode: 0, payload: [99]),
            ]
        case .invalidTextCompressed:
            let payload = deflater?.compress([97] + bad + [98], .plain) ?? []
            return [PeerFrame(opcode: 1, reserved: 4, payload: payload)]
        case .unfinishedCharacter:
            return [PeerFrame(opcode: 1, payload: [97, 0xE2, 0x82])]
        default: return [PeerFrame(opcode: 1, payload: [97] + bad + [98])]
        }
    }
}
