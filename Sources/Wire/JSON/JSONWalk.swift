// Reads arrays, objects and their content. Nothing is stored, so memory is needed only for the
// depth.
extension JSONScanner {
    /// Skips the first byte of an array or object.
    /// - Returns: false if it is empty; the closing byte is skipped then, too.
    @inline(__always)
    mutating func enters(_ kind: JSONToken.Kind) -> Bool {
        skip()
        guard byte == JSONScanner.closing(kind) else { return true }
        offset += 1
        return false
    }

    /// Called after an element or member: skips the comma and returns true, or skips the closing
    /// byte and returns false.
    @inline(__always)
    mutating func continues(in kind: JSONToken.Kind) throws(RealtimeError) -> Bool {
        skipBlanks()
        if byte == UInt8(ascii: ",") {
            skip()
            return true
        }
        guard byte == JSONScanner.closing(kind) else { throw unfinished(kind) }
        offset += 1
        return false
    }

    private func unfinished(_ kind: JSONToken.Kind) -> RealtimeError {
        unexpected("where \",\" or \(kind == .object ? "\"}\"" : "\"]\"") belongs")
    }

    /// Reads a member's name, and skips the colon after it.
    mutating func readName() throws(RealtimeError) -> JSONSpan {
        let start = offset
        guard byte == UInt8(ascii: "\"") else {
            throw unexpected("where a member's name belongs")
        }
        let isPlain = try readString()
        let name = JSONSpan(source: source(from: start), kind: .string, isPlain: isPlain)
        skipBlanks()
        guard byte == UInt8(ascii: ":") else { throw unexpected("where \":\" belongs") }
        skip()
        return name
    }

    /// Reads the value here, nested at most `levels` deep.
    mutating func readSpan(levels: Int) throws(RealtimeError) -> JSONSpan {
        let start = offset
        let blanks = blanks
        let (kind, isPlain) = try readValue(levels: levels)
        return JSONSpan(
            source: source(from: start), kind: kind, isPlain: isPlain && self.blanks == blanks)
    }

    /// Skips the value here, nested at most `levels` deep.
    @discardableResult
    mutating func readValue(
        levels: Int
    ) throws(RealtimeError) -> (kind: JSONToken.Kind, isPlain: Bool) {
        switch byte {
        case UInt8(ascii: "\""): return (.string, try readString())
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            return (.number, try readNumber())
        case UInt8(ascii: "["):
            let levels = try inside(levels)
            guard enters(.array) else { return (.array, true) }
            repeat { try readValue(levels: levels) } while try continues(in: .array)
            return (.array, true)
        case UInt8(ascii: "{"):
            let levels = try inside(levels)
            guard enters(.object) else { return (.object, true) }
            repeat {
                _ = try readName()
                try readValue(levels: levels)
            } while try continues(in: .object)
            return (.object, true)
        default: return (try readLiteral(), true)
        }
    }

    /// The levels that may still be nested inside an array or object here.
    func inside(_ levels: Int) throws(RealtimeError) -> Int {
        guard levels > 0 else { throw JSONTape.fault(at: offset, "nested too deeply") }
        return levels - 1
    }

    private static func closing(_ kind: JSONToken.Kind) -> UInt8 {
        kind == .object ? UInt8(ascii: "}") : UInt8(ascii: "]")
    }
}
