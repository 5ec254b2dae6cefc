import Wire

/// The bytes of a server's frame: unmasked, its length in the shortest form.
func frame(
    _ opcode: Opcode, _ payload: [UInt8], isFinal: Bool = true, isCompressed: Bool = false
) -> [UInt8] {
    let first = (isFinal ? 0x80 : 0) | (isCompressed ? 0x40 : 0) | opcode.rawValue
    let count = payload.count
    if count < 126 { return [first, UInt8(count)] + payload }
    if count < 65536 { return [first, 126, UInt8(count >> 8), UInt8(count & 0xFF)] + payload }
    let length = withUnsafeBytes(of: UInt64(count).bigEndian) { Array($0) }
    return [first, 127] + length + payload
}

func frame(_ opcode: Opcode, _ text: String, isFinal: Bool = true) -> [UInt8] {
    frame(opcode, Array(text.utf8), isFinal: isFinal)
}

/// Every way to cut `bytes`: whole, byte by byte, and in two at each offset.
func splits(_ bytes: [UInt8]) -> [[[UInt8]]] {
    var all = [[bytes], bytes.map { [$0] }]
    for cut in bytes.indices.dropFirst() {
        all.append([Array(bytes[..<cut]), Array(bytes[cut...])])
    }
    return all
}
