// Arrays, objects and what is in them. Nothing is kept of what is walked over, so that memory is
// that of the depth.
extension JSONScanner {
    /// Over the first byte of an array or object.
    /// - Returns: Whether something is inside; it has been left if not.
    @inline(__always)
    mutating func enters(_ kind: JSONToken.Kind) -> Bool {
        skip()
        guard byte == JSONScanner.closing(kind) else { return true }
        offset += 1
        return false
    }

    /// Behind an element or member: over the comma to the next one, or out of the array or object.
    @inline(__always)
    mutating func goesOn(in kind: JSONToken.Kind) throws(RealtimeError) -> Bool {
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

    /// Reads a member's name, and goes over the colon behind it.
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

    /// Reads the value here with all inside it, which is nested `levels` deep at most.
    mutating func readSpan(levels: Int) throws(RealtimeError) -> JSONSpan {
        let start = offset
        let blanks = blanks
        let (kind, isPlain) = try readValue(levels: levels)
        return JSONSpan(
            source: source(from: start), kind: kind, isPlain: isPlain && self.blanks == blanks)
    }

    /// Goes over the value here in the same way.
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
            repeat { try readValue(levels: levels) } while try goesOn(in: .array)
            return (.array, true)
        case UInt8(ascii: "{"):
            let levels = try inside(levels)
            guard enters(.object) else { return (.object, true) }
            repeat {
                _ = try readName()
                try readValue(levels: levels)
            } while try goesOn(in: .object)
            return (.object, true)
        default: return (try readLiteral(), true)
        }
    }

    /// The levels that are left inside an array or object here.
    func inside(_ levels: Int) throws(RealtimeError) -> Int {
        guard levels > 0 else { throw JSONTape.fault(at: offset, "nested too deep") }
        return levels - 1
    }

    private static func closing(_ kind: JSONToken.Kind) -> UInt8 {
        kind == .object ? UInt8(ascii: "}") : UInt8(ascii: "]")
    }
}
