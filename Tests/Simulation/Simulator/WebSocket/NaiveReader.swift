internal import CShims

/// A second reader of a server's frames (RFC 6455, RFC 7692), written only to be obviously correct:
/// it has the whole input, copies freely, and inflates each message from its first byte again
/// whenever one of its frames ends. It shares no code with Wire; if the two disagree, one of them
/// is wrong. The fuzzer and the simulation use it.
package struct NaiveReader {
    package struct Rules: Sendable {
        /// The limit of one message in bytes; 0 means no limit.
        package var messageLimit = 0
        /// The limit of a message's growth above 64 KiB; 0 means no limit.
        package var inflateRatio = 0
        /// The server's compression; nil if none was agreed.
        package var deflate: (windowBits: Int, noContextTakeover: Bool)?

        package init() {}
    }

    /// A message or a control frame.
    package struct Event: Equatable, Sendable {
        package var opcode: UInt8
        package var payload: [UInt8]
        /// Where it ends in the input.
        package var end: Int

        package var isMessage: Bool { opcode < 8 }
    }

    /// In order, up to the first violation, the first close frame, or the end of the input.
    package private(set) var events: [Event] = []
    /// The close codes that fit the violation; empty without one. It is a single code, except for a
    /// compressed message with two faults: how it was split decides which one is found first.
    package private(set) var failure: Set<UInt16> = []

    private let rules: Rules
    private var input: [UInt8]
    private var at = 0
    /// The message that is being read.
    private var opcode: UInt8?
    private var isCompressed = false
    private var payload: [UInt8] = []
    /// The data that the peer's compressor may refer back to.
    private var history: [UInt8] = []

    package init(_ input: [UInt8], _ rules: Rules) {
        self.input = input
        self.rules = rules
        while failure.isEmpty, events.last?.opcode != 8, readFrame() {}
    }

    /// The code and reason of the close frame that ended the input; 1005 if it had none.
    package var close: (code: UInt16, reason: [UInt8])? {
        guard failure.isEmpty, let last = events.last, last.opcode == 8 else { return nil }
        if last.payload.isEmpty { return (1005, []) }
        let code = UInt16(last.payload[0]) * 256 + UInt16(last.payload[1])
        return (code, Array(last.payload[2...]))
    }

    /// False if the input has no further whole frame.
    private mutating func readFrame() -> Bool {
        guard input.count - at >= 2 else { return false }
        let first = input[at]
        let second = input[at + 1]
        let isFinal = first >= 128
        let rsv1 = first & 64 != 0
        let code = first & 15
        let shortLength = Int(second & 127)
        // RFC 6455 §5.2: reserved bits, opcodes, masking; §5.5: control frames.
        if first & 48 != 0 || (rsv1 && rules.deflate == nil) { return fail(1002) }
        if ![0, 1, 2, 8, 9, 10].contains(code) { return fail(1002) }
        if second >= 128 { return fail(1002) }
        if code >= 8, !isFinal || rsv1 || shortLength > 125 { return fail(1002) }

        let digits = shortLength == 126 ? 2 : shortLength == 127 ? 8 : 0
        guard input.count - at >= 2 + digits else { return false }
        var length = UInt64(shortLength)
        if digits > 0 {
            length = input[(at + 2)..<(at + 2 + digits)].reduce(0) { $0 * 256 + UInt64($1) }
            if length < (digits == 2 ? 126 : 65_536) || length >= 1 << 63 { return fail(1002) }
        }
        // RFC 6455 §5.4: fragments.
        if code == 0, opcode == nil || rsv1 { return fail(1002) }
        if code == 1 || code == 2 {
            if opcode != nil { return fail(1002) }
            opcode = code
            isCompressed = rsv1
            payload = []
        }
        if code < 8, !isCompressed, rules.messageLimit > 0,
            length > UInt64(rules.messageLimit - payload.count)
        {
            return fail(1009)
        }
        let start = at + 2 + digits
        let available = min(UInt64(input.count - start), length)
        let piece = Array(input[start..<(start + Int(available))])
        at = start + piece.count
        let isWhole = available == length
        if code >= 8 { return isWhole && control(code, piece) }
        return data(piece, endsMessage: isWhole && isFinal) && isWhole
    }

    private mutating func control(_ code: UInt8, _ payload: [UInt8]) -> Bool {
        if code == 8 {
            // §5.5.1, §7.4.
            if payload.count == 1 { return fail(1002) }
            if payload.count >= 2 {
                let code = Int(payload[0]) * 256 + Int(payload[1])
                let isAllowed =
                    (1000...1003).contains(code) || (1007...1014).contains(code)
                    || (3000...4999).contains(code)
                if !isAllowed { return fail(1002) }
                if !isText(Array(payload[2...])) { return fail(1007) }
            }
        }
        events.append(Event(opcode: code, payload: payload, end: at))
        return true
    }

    private mutating func data(_ piece: [UInt8], endsMessage: Bool) -> Bool {
        payload += piece
        var message = payload
        if isCompressed {
            guard let inflated = inflateMessage(isWhole: endsMessage) else { return false }
            message = inflated
        }
        if opcode == 1, endsMessage ? !isText(message) : !beginsText(message) {
            return fail(1007)
        }
        if endsMessage {
            events.append(Event(opcode: opcode ?? 0, payload: message, end: at))
            opcode = nil
            if isCompressed, rules.deflate?.noContextTakeover == false {
                history = (history + message).suffix(32_768)
            }
        }
        return true
    }

    private mutating func fail(_ codes: UInt16...) -> Bool {
        failure.formUnion(codes)
        return false
    }

    // MARK: Compression

    /// The message so far; nil for a violation.
    private mutating func inflateMessage(isWhole: Bool) -> [UInt8]? {
        guard let (windowBits, _) = rules.deflate else { return nil }
        // Bytes beyond a limit are not needed.
        let enough = rules.messageLimit > 0 ? rules.messageLimit + 1 : 64 << 20
        let result = naiveInflate(
            payload, addsTail: isWhole, history: history, windowBits: windowBits, enough: enough)
        if result.isCorrupt { _ = fail(1007) }
        if rules.messageLimit > 0, result.output.count > rules.messageLimit { _ = fail(1009) }
        if rules.inflateRatio > 0,
            result.output.count > max(65_536, payload.count * rules.inflateRatio)
        {
            _ = fail(1009)
        }
        if opcode == 1, !beginsText(result.output) { _ = fail(1007) }
        return failure.isEmpty ? result.output : nil
    }
}

/// Inflates a message from its start (RFC 7692 §7.2.2), each time with a new stream whose
/// dictionary is the earlier data.
private func naiveInflate(
    _ message: [UInt8], addsTail: Bool, history: [UInt8], windowBits: Int, enough: Int
) -> (output: [UInt8], isCorrupt: Bool) {
    // A message without a byte is empty, and needs no more input.
    if message.isEmpty { return ([], false) }
    var output: [UInt8] = []
    var rest = message
    var endsAtFinalBlock = false
    var block = 128
    for isTail in [false, true] {
        if isTail {
            guard addsTail, !endsAtFinalBlock else { break }
            rest = message + [0, 0, 0xFF, 0xFF]
            output = []
        }
        // A block with BFINAL ends zlib's stream, not the message (§7.2.3.4): continue after it.
        repeat {
            let dictionary = Array((history + output).suffix(1 << windowBits))
            let step = inflateStream(rest, dictionary, windowBits, enough - output.count)
            output += step.output
            if step.isCorrupt { return (output, true) }
            block = step.block
            rest.removeFirst(step.used)
            endsAtFinalBlock = step.isEnded && rest.isEmpty
        } while !rest.isEmpty && output.count < enough
    }
    // It must end between two blocks, not inside one.
    let isInside = addsTail && !endsAtFinalBlock && output.count < enough && block != 128
    return (output, isInside)
}

private struct StreamStep {
    var output: [UInt8] = []
    var used = 0
    var isEnded = false
    var isCorrupt = false
    /// zlib's data_type: 128 between two blocks.
    var block = 0
}

private func inflateStream(
    _ input: [UInt8], _ dictionary: [UInt8], _ windowBits: Int, _ enough: Int
) -> StreamStep {
    var step = StreamStep()
    var stream = z_stream()
    guard shim_inflate_init(&stream, Int32(windowBits)) == Z_OK else { fatalError("no memory") }
    defer { inflateEnd(&stream) }
    if !dictionary.isEmpty {
        inflateSetDictionary(&stream, dictionary, UInt32(dictionary.count))
    }
    var input = input
    var buffer = [UInt8](repeating: 0, count: 4096)
    input.withUnsafeMutableBufferPointer { bytes in
        stream.next_in = bytes.baseAddress
        stream.avail_in = UInt32(bytes.count)
        while step.output.count < enough {
            let code = buffer.withUnsafeMutableBufferPointer { space in
                stream.next_out = space.baseAddress
                stream.avail_out = UInt32(space.count)
                return inflate(&stream, Z_SYNC_FLUSH)
            }
            step.output += buffer[..<(4096 - Int(stream.avail_out))]
            step.isEnded = code == Z_STREAM_END
            step.isCorrupt = code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR
            // A call without progress sets another data_type.
            if code != Z_BUF_ERROR { step.block = Int(stream.data_type) }
            if step.isEnded || step.isCorrupt { break }
            if stream.avail_in == 0, stream.avail_out > 0 { break }
        }
        step.used = bytes.count - Int(stream.avail_in)
    }
    return step
}

// MARK: Text

/// Whether the bytes are UTF-8, according to the standard library.
private func isText(_ bytes: [UInt8]) -> Bool { String(validating: bytes, as: UTF8.self) != nil }

/// Whether the bytes could be the beginning of UTF-8: they are UTF-8 up to their last character,
/// and that can be completed.
private func beginsText(_ bytes: [UInt8]) -> Bool {
    if isText(bytes) { return true }
    for tail in 1...3 where tail <= bytes.count {
        guard isText(Array(bytes.dropLast(tail))) else { continue }
        let begun = Array(bytes.suffix(tail))
        // The first continuation byte has one of three ranges; each of these values is in one of
        // them.
        let endings: [[UInt8]] = [[0x80], [0x90], [0xA0]].flatMap { first in
            (0...2).map { first + [UInt8](repeating: 0x80, count: $0) }
        }
        // It must become one character, not two.
        if endings.contains(where: {
            String(validating: begun + $0, as: UTF8.self)?.unicodeScalars.count == 1
        }) {
            return true
        }
    }
    return false
}
