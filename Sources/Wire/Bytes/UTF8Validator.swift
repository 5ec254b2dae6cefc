import CShims

/// Validates UTF-8 (RFC 3629) as it arrives, at any split. It fails at the first byte that no
/// continuation can make valid: surrogates, overlong forms and values above U+10FFFF fail at their
/// second byte.
package struct UTF8Validator: Sendable {
    /// Continuation bytes still missing, and the allowed range of the next one.
    private var missing: UInt8 = 0
    private var lowest: UInt8 = 0x80
    private var highest: UInt8 = 0xBF

    package init() {}

    /// Whether the bytes so far end at the end of a character.
    package var isComplete: Bool { missing == 0 }

    package mutating func reset() { self = UTF8Validator() }

    /// Checks the next bytes. Returns false at the first invalid one; the validator must not be
    /// used after that.
    package mutating func accepts(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var index = 0
        let end = bytes.count
        if end >= UTF8Validator.acceleratedBytes, UTF8Validator.isAccelerated,
            let base = bytes.baseAddress
        {
            // From one character boundary to another. The rest is checked byte by byte.
            while missing > 0 {
                guard step(bytes[index]) else { return false }
                index += 1
            }
            let border = UTF8Validator.lastBorder(bytes)
            if border > index {
                let start = (base + index).assumingMemoryBound(to: UInt8.self)
                guard shim_is_utf8(start, border - index) else { return false }
                index = border
            }
        }
        while index < end {
            if missing == 0 {
                index = UTF8Validator.skipASCII(bytes, from: index)
                if index == end { return true }
            }
            guard step(bytes[index]) else { return false }
            index += 1
        }
        return true
    }

    /// Whether `bytes` is complete, valid UTF-8.
    package static func isValid(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if bytes.count >= acceleratedBytes, isAccelerated, let base = bytes.baseAddress {
            return shim_is_utf8(base.assumingMemoryBound(to: UInt8.self), bytes.count)
        }
        var validator = UTF8Validator()
        return validator.accepts(bytes) && validator.isComplete
    }

    private static var isAccelerated: Bool { shim_has_utf8_validator() }
    /// For fewer bytes the call costs more than it saves.
    private static let acceleratedBytes = 24

    /// Where the last character begins if it may be cut: at most three bytes before the end.
    private static func lastBorder(_ bytes: UnsafeRawBufferPointer) -> Int {
        for back in 1...3 where back <= bytes.count {
            let byte = bytes[bytes.count - back]
            if byte & 0xC0 != 0x80 { return byte < 0x80 ? bytes.count : bytes.count - back }
        }
        return bytes.count
    }

    /// The index of the first byte at or after `start` that is not ASCII. Checks 32 bytes at a
    /// time.
    private static func skipASCII(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
        guard let base = bytes.baseAddress else { return start }
        var index = start
        let end = bytes.count
        let high: UInt64 = 0x8080_8080_8080_8080
        while end - index >= 32 {
            let at = base + index
            let a = at.loadUnaligned(as: UInt64.self) | (at + 8).loadUnaligned(as: UInt64.self)
            let b =
                (at + 16).loadUnaligned(as: UInt64.self) | (at + 24).loadUnaligned(as: UInt64.self)
            if (a | b) & high != 0 { break }
            index += 32
        }
        while end - index >= 8 {
            let word = (base + index).loadUnaligned(as: UInt64.self) & high
            if word != 0 { return index + UInt64(littleEndian: word).trailingZeroBitCount / 8 }
            index += 8
        }
        while index < end, (base + index).load(as: UInt8.self) < 0x80 { index += 1 }
        return index
    }

    /// Applies the table of well-formed sequences (RFC 3629 §4).
    private mutating func step(_ byte: UInt8) -> Bool {
        if missing > 0 {
            guard byte >= lowest, byte <= highest else { return false }
            missing -= 1
            lowest = 0x80
            highest = 0xBF
            return true
        }
        switch byte {
        case 0x00...0x7F: break
        case 0xC2...0xDF: missing = 1
        case 0xE0: (missing, lowest) = (2, 0xA0)
        case 0xED: (missing, highest) = (2, 0x9F)
        case 0xE1...0xEF: missing = 2
        case 0xF0: (missing, lowest) = (3, 0x90)
        case 0xF1...0xF3: missing = 3
        case 0xF4: (missing, highest) = (3, 0x8F)
        default: return false
        }
        return true
    }
}
