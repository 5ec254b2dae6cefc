/// The kinds of frame (RFC 6455 §5.2).
package enum Opcode: UInt8, Sendable {
    case continuation = 0x0
    case text = 0x1
    case binary = 0x2
    case close = 0x8
    case ping = 0x9
    case pong = 0xA

    package var isControl: Bool { rawValue & 0x8 != 0 }
}

/// The kind of a message: valid UTF-8, or any bytes. The numbers are those of the C ABI.
public enum MessageKind: Int32, Sendable {
    case text = 1
    case binary = 2
}

/// A close code (RFC 6455 §7.4.1 and the IANA registry).
public struct CloseCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: UInt16

    public init(rawValue: UInt16) { self.rawValue = rawValue }

    public static let normal = CloseCode(rawValue: 1000)
    public static let goingAway = CloseCode(rawValue: 1001)
    public static let protocolError = CloseCode(rawValue: 1002)
    public static let unsupportedData = CloseCode(rawValue: 1003)
    /// The peer's close frame had no code. Never sent.
    public static let noStatus = CloseCode(rawValue: 1005)
    /// The connection ended without a close frame. Never sent.
    public static let abnormal = CloseCode(rawValue: 1006)
    public static let invalidPayload = CloseCode(rawValue: 1007)
    public static let policyViolation = CloseCode(rawValue: 1008)
    public static let messageTooBig = CloseCode(rawValue: 1009)
    public static let extensionRequired = CloseCode(rawValue: 1010)
    public static let internalError = CloseCode(rawValue: 1011)

    /// Whether a close frame may contain this code: the registered codes, and 3000–4999 for
    /// libraries and applications.
    public var mayBeSent: Bool {
        switch rawValue {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }

    public var description: String { String(rawValue) }
}

/// The peer violated the protocol: the close code to send, and a sentence for the user.
package struct ProtocolFailure: Error, Equatable, Sendable {
    package let code: CloseCode
    package let message: String

    package init(_ code: CloseCode, _ message: String) {
        self.code = code
        self.message = message
    }

    static var invalidText: ProtocolFailure {
        ProtocolFailure(.invalidPayload, "text message is not valid UTF-8")
    }
}

/// The header of a server's frame (RFC 6455 §5.2): 2, 4 or 10 bytes, as a server never masks
/// (§5.1).
package struct FrameHeader: Equatable, Sendable {
    package static let maximumSize = 10

    package var isFinal: Bool
    /// RSV1: with permessage-deflate, the first frame of a compressed message (RFC 7692 §6).
    package var isCompressed: Bool
    package var opcode: Opcode
    package var payloadLength: Int
    /// The size of the header itself, in bytes.
    package var size: Int

    /// The header at `start`; nil if more bytes are needed.
    @inline(__always)
    package static func parse(
        _ bytes: UnsafeRawBufferPointer, from start: Int, allowsCompression: Bool
    ) throws(ProtocolFailure) -> FrameHeader? {
        let available = bytes.count - start
        guard available >= 2 else { return nil }
        let first = bytes[start]
        let second = bytes[start + 1]
        if first & 0x30 != 0 || (first & 0x40 != 0 && !allowsCompression) {
            throw reservedBits(first)
        }
        guard let opcode = Opcode(rawValue: first & 0x0F) else { throw unknownOpcode(first & 0x0F) }
        if second & 0x80 != 0 { throw masked() }
        var header = FrameHeader(
            isFinal: first & 0x80 != 0, isCompressed: first & 0x40 != 0, opcode: opcode,
            payloadLength: Int(second), size: 2)
        if opcode.isControl { try header.checkControl() }
        if second < 126 { return header }
        return try header.readLongLength(bytes, from: start)
    }

    /// Control frames are short and not fragmented (RFC 6455 §5.5), and never compressed (RFC 7692
    /// §6.1).
    private func checkControl() throws(ProtocolFailure) {
        if payloadLength > 125 {
            throw ProtocolFailure(.protocolError, "control frame of more than 125 bytes")
        }
        if !isFinal { throw ProtocolFailure(.protocolError, "fragmented control frame") }
        if isCompressed { throw ProtocolFailure(.protocolError, "compressed control frame") }
    }

    /// The shortest form must be used, and the top bit must be 0 (RFC 6455 §5.2).
    private mutating func readLongLength(
        _ bytes: UnsafeRawBufferPointer, from start: Int
    ) throws(ProtocolFailure) -> FrameHeader? {
        let digits = payloadLength == 126 ? 2 : 8
        guard bytes.count - start >= 2 + digits else { return nil }
        var length: UInt64 = 0
        for index in 0..<digits { length = length << 8 | UInt64(bytes[start + 2 + index]) }
        guard length >= (digits == 2 ? 126 : 65536) else {
            throw ProtocolFailure(.protocolError, "frame length not in its shortest form")
        }
        guard length <= UInt64(Int.max) else {
            throw ProtocolFailure(.protocolError, "frame length with its top bit set")
        }
        payloadLength = Int(length)
        size = 2 + digits
        return self
    }

    private static func reservedBits(_ first: UInt8) -> ProtocolFailure {
        ProtocolFailure(
            .protocolError, "reserved bits \((first >> 4) & 0x7) set without an extension")
    }

    private static func unknownOpcode(_ opcode: UInt8) -> ProtocolFailure {
        ProtocolFailure(.protocolError, "unknown opcode \(opcode)")
    }

    private static func masked() -> ProtocolFailure {
        ProtocolFailure(.protocolError, "masked frame from a server")
    }
}
