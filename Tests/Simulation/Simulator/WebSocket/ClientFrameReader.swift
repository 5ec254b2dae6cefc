/// Reads the client's frames and checks them against every rule of RFC 6455 §5 and RFC 7692: the
/// peer trusts nothing.
struct ClientFrameReader {
    enum Event {
        case message(opcode: UInt8, payload: [UInt8])
        case ping([UInt8])
        case pong([UInt8])
        /// 1005 for an empty one.
        case close(code: UInt16, reason: [UInt8])
    }

    struct Fault: Error { var what: String }

    /// The limit of a data frame's payload; 0 means no limit.
    var maxFrameBytes = 0
    var inflater: PeerInflater?
    private(set) var frameCount = 0
    private var buffer: [UInt8] = []
    private var at = 0
    private var opcode: UInt8?
    private var isCompressed = false
    private var payload: [UInt8] = []
    private var isClosed = false

    mutating func append(_ bytes: some Sequence<UInt8>) throws(Fault) {
        if at > 65_536 || at == buffer.count {
            buffer.removeFirst(at)
            at = 0
        }
        buffer.append(contentsOf: bytes)
        if isClosed, at < buffer.count { throw Fault(what: "bytes after its close frame") }
    }

    /// The next event, nil when more bytes are needed.
    mutating func next() throws(Fault) -> Event? {
        while buffer.count - at >= 2 {
            let first = buffer[at]
            let second = buffer[at + 1]
            guard second >= 128 else { throw Fault(what: "sent an unmasked frame") }
            let digits = second & 127 == 126 ? 2 : second & 127 == 127 ? 8 : 0
            let header = 2 + digits + 4
            guard buffer.count - at >= header else { return nil }
            var length = Int(second & 127)
            if digits > 0 {
                length = buffer[(at + 2)..<(at + 2 + digits)].reduce(0) { $0 << 8 | Int($1) }
                guard length >= (digits == 2 ? 126 : 65_536) else {
                    throw Fault(what: "sent a length not in its shortest form")
                }
            }
            guard buffer.count - at - header >= length else { return nil }
            let start = at + header
            let data = ClientFrameReader.unmask(
                buffer[start..<(start + length)], Array(buffer[(start - 4)..<start]))
            at = start + length
            frameCount += 1
            if let event = try frame(first, data) { return event }
        }
        return nil
    }

    private static func unmask(_ payload: ArraySlice<UInt8>, _ key: [UInt8]) -> [UInt8] {
        var data = Array(payload)
        data.withUnsafeMutableBytes { bytes in
            var index = 0
            for at in 0..<bytes.count {
                bytes[at] ^= key[index]
                index = (index + 1) & 3
            }
        }
        return data
    }

    private mutating func frame(_ first: UInt8, _ data: [UInt8]) throws(Fault) -> Event? {
        let code = first & 15
        let isFinal = first >= 128
        let rsv1 = first & 0x40 != 0
        if isClosed { throw Fault(what: "sent a frame after its close frame") }
        if first & 0x30 != 0 { throw Fault(what: "set a reserved bit") }
        if code >= 8 {
            guard isFinal, !rsv1, data.count <= 125 else {
                throw Fault(what: "sent a wrong control frame")
            }
            return try control(code, data)
        }
        if maxFrameBytes > 0, data.count > maxFrameBytes {
            throw Fault(what: "sent a frame of \(data.count) bytes, its limit is \(maxFrameBytes)")
        }
        switch (code, opcode) {
        case (0, nil): throw Fault(what: "continued no message")
        case (0, _): if rsv1 { throw Fault(what: "set RSV1 on a continuation") }
        case (1, nil), (2, nil):
            if rsv1, inflater == nil { throw Fault(what: "compressed without being asked") }
            opcode = code
            isCompressed = rsv1
            payload = []
        case (1, _), (2, _): throw Fault(what: "began a message inside another")
        default: throw Fault(what: "sent the opcode \(code)")
        }
        payload += data
        guard isFinal, let opcode else { return nil }
        self.opcode = nil
        if isCompressed {
            guard let inflated = inflater?.inflate(payload) else {
                throw Fault(what: "sent a compressed message that cannot be inflated")
            }
            return .message(opcode: opcode, payload: inflated)
        }
        return .message(opcode: opcode, payload: payload)
    }

    private mutating func control(_ code: UInt8, _ data: [UInt8]) throws(Fault) -> Event {
        switch code {
        case 8:
            isClosed = true
            if data.isEmpty { return .close(code: 1005, reason: []) }
            guard data.count >= 2 else { throw Fault(what: "sent a close frame of one byte") }
            return .close(
                code: UInt16(data[0]) << 8 | UInt16(data[1]), reason: Array(data[2...]))
        case 9: return .ping(data)
        case 10: return .pong(data)
        default: throw Fault(what: "sent the opcode \(code)")
        }
    }
}
