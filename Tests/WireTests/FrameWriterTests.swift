import Testing

@testable import Wire

/// Parses a client's frame: header, key, payload.
private func parse(_ bytes: [UInt8]) -> (first: UInt8, payload: [UInt8]) {
    var at = 2
    var length = Int(bytes[1] & 0x7F)
    if length == 126 {
        length = Int(bytes[2]) << 8 | Int(bytes[3])
        at = 4
    } else if length == 127 {
        length = bytes[2..<10].reduce(0) { $0 << 8 | Int($1) }
        at = 10
    }
    let key = bytes[at..<(at + 4)]
    let payload = bytes[(at + 4)...].enumerated().map { $1 ^ key[at + $0 % 4] }
    #expect(payload.count == length)
    return (bytes[0], payload)
}

@Suite struct FrameWriterTests {
    @Test(arguments: [0, 1, 3, 7, 8, 9, 31, 32, 33, 63, 125, 126, 127, 65_535, 65_536, 70_001])
    func payloadsOfEveryLengthAreMasked(count: Int) {
        let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        var output = ByteBuffer()
        payload.withUnsafeBytes {
            FrameWriter.write(
                .binary, isFinal: true, isCompressed: false, payload: $0, key: 0xA1B2_C3D4,
                into: &output)
        }
        let bytes = Array(output.readable)
        #expect(bytes[1] & 0x80 != 0)
        let frame = parse(bytes)
        #expect(frame.first == 0x82)
        #expect(frame.payload == payload)
        // RFC 6455 §5.2: the shortest form.
        let header = count < 126 ? 2 : count < 65_536 ? 4 : 10
        #expect(bytes.count == header + 4 + count)
    }

    @Test func flagsHaveTheirBits() {
        var output = ByteBuffer()
        let none = UnsafeRawBufferPointer(start: nil, count: 0)
        FrameWriter.write(
            .text, isFinal: false, isCompressed: true, payload: none, key: 0, into: &output)
        #expect(Array(output.readable) == [0x41, 0x80, 0, 0, 0, 0])
    }

    @Test func keysAreUsedOnceAndRefilledInBulk() {
        var refills = 0
        var counter: UInt8 = 0
        let keys = MaskKeys { buffer in
            refills += 1
            for index in buffer.indices {
                counter &+= 1
                buffer[index] = counter &* 31
            }
        }
        for _ in 0..<1024 { _ = keys.next() }
        #expect(refills == 1)
        _ = keys.next()
        #expect(refills == 2)
    }
}

@Suite struct ClosePayloadTests {
    @Test(
        arguments: [
            ([], 1005, ""), ([0x03, 0xE8], 1000, ""), ([0x0F, 0xA0, 0x68, 0x69], 4000, "hi"),
        ] as [([UInt8], UInt16, String)])
    func goodPayloadsAreRead(payload: [UInt8], code: UInt16, reason: String) throws {
        let parsed = try payload.withUnsafeBytes { try ClosePayload.parse($0) }
        #expect(parsed.0 == CloseCode(rawValue: code))
        #expect(parsed.1 == reason)
    }

    @Test(
        arguments: [
            ([0x03], .protocolError), ([0x03, 0xE7], .protocolError),
            ([0x03, 0xED], .protocolError),
            ([0x03, 0xEE], .protocolError), ([0x03, 0xF7], .protocolError),
            ([0x13, 0x88], .protocolError), ([0x03, 0xE8, 0xFF], .invalidPayload),
        ] as [([UInt8], CloseCode)])
    func badPayloadsAreRefused(payload: [UInt8], code: CloseCode) {
        let failure = #expect(throws: ProtocolFailure.self) {
            try payload.withUnsafeBytes { try ClosePayload.parse($0) }
        }
        #expect(failure?.code == code)
    }
}
