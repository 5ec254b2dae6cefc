import CShims

/// Parses an event stream (HTML Living Standard §9.2.6), fed at any split: one event, comment or
/// reconnection time per call. It never waits for a byte after the one that ends a line, looks at
/// each byte once, and keeps only bytes that an event needs.
package struct EventStreamParser: ~Copyable {
    package enum Step {
        case needMoreBytes
        /// Valid until the next call.
        case event(StreamEvent)
        /// A comment: the text after the colon, repaired as UTF-8 and followed by a NUL.
        case comment(UnsafeRawBufferPointer)
        /// A valid reconnection time, reported at the end of its line.
        case retry(milliseconds: Int64)
    }

    /// A longer reconnection time counts as one day.
    package static let longestRetry: Int64 = 86_400_000

    /// The part of a line that the input has reached.
    private enum Position {
        case start
        /// `matched` bytes of the name have been read, and no other field's name begins with them.
        case name(Field, matched: Int)
        /// After the colon. `atStart`: a space that comes next is not part of the value.
        case value(Field, atStart: Bool)
        /// In a line that is not needed.
        case skipped
    }

    private let limits: Limits
    package var reportsComments: Bool

    /// How many bytes of a byte order mark are held; nil after the body's first bytes.
    private var heldMark: Int? = 0
    private var skipsLF = false
    private var position = Position.start
    /// Bytes of the current line in earlier inputs.
    private var lineBytes = 0
    private var failure: RealtimeError?

    /// Each line's value followed by an LF. Once reported, a NUL replaces the last LF.
    private var dataBytes = ByteBuffer()
    private var dataIsASCII = true
    private var typeBytes = ByteBuffer()
    private var typeIsASCII = false
    /// The comment being read, or an id that spans several inputs.
    private var scratch = ByteBuffer()
    /// The number so far; nil if the value has anything but digits.
    private var digits: Int64?
    private var hasDigits = false
    private var wasReported = false

    /// The id of the last complete block, followed by a NUL.
    private var idBytes = ByteBuffer()
    private var idIsASCII = true
    /// The id of the current block, if it has an id line.
    private var pendingID = ByteBuffer()
    private var pendingIsASCII = true
    private var hasPendingID = false
    /// The last complete block had an id line of its own.
    private var hadID = false
    /// `id` if it is not ASCII, made when first asked for.
    private var idText = ByteBuffer()
    private var idIsRepaired = false

    /// How many blocks had an id. It changes whenever `lastEventID` may have changed.
    package private(set) var idCount: UInt64 = 0
    /// The last valid reconnection time, in milliseconds.
    package private(set) var reconnectionTime: Int64?

    /// - Parameters:
    ///   - lastEventID: the id of events before the first id line.
    ///   - reportsComments: false skips comments without keeping any of them.
    package init(
        limits: Limits = Limits(), lastEventID: [UInt8] = [], reportsComments: Bool = false
    ) {
        self.limits = limits
        self.reportsComments = reportsComments
        lastEventID.withUnsafeBytes { idBytes.append($0) }
        idIsASCII = lastEventID.allSatisfy { $0 < 0x80 }
        idBytes.terminate()
    }

    /// The id of the last complete block: raw bytes, empty if none.
    package var lastEventID: [UInt8] { Array(idBytes.readable) }

    /// `lastEventID` as UTF-8, followed by a NUL.
    private var id: UnsafeRawBufferPointer {
        mutating get {
            if idIsASCII { return idBytes.readable }
            if !idIsRepaired {
                idText.removeAll(keeping: EventStreamParser.keptStorage)
                idText.append(idBytes.readable)
                EventStreamParser.repair(&idText, isASCII: false)
                idIsRepaired = true
            }
            return idText.readable
        }
    }

    /// Reads from `used` up to the next step, and advances `used`. Unused bytes may be passed
    /// again from another address.
    package mutating func next(
        _ input: UnsafeRawBufferPointer, _ used: inout Int
    ) throws(RealtimeError) -> Step {
        if let failure { throw failure }
        if wasReported { discardReported() }
        if heldMark != nil { skipMark(input, &used) }
        do throws(RealtimeError) {
            return try read(input, &used)
        } catch {
            failure = error
            throw error
        }
    }

    @inline(__always)
    private mutating func read(
        _ input: UnsafeRawBufferPointer, _ used: inout Int
    ) throws(RealtimeError) -> Step {
        guard let base = input.baseAddress else { return .needMoreBytes }
        let bytes = base.assumingMemoryBound(to: UInt8.self)
        while used < input.count {
            if skipsLF {
                skipsLF = false
                if bytes[used] == 0x0A {
                    used += 1
                    continue
                }
            }
            let left = input.count - used
            var isASCII = true
            let length = shim_line_end(bytes + used, left, &isASCII)
            let part = UnsafeRawBufferPointer(start: base + used, count: length)
            let ends = length < left
            used += length
            if ends {
                skipsLF = bytes[used] == 0x0D
                used += 1
                if case .start = position {
                    if length == 0 {
                        guard endBlock() else { continue }
                        return .event(makeEvent())
                    }
                    if try takeWhole(part, isASCII) { continue }
                }
            }
            if let step = try take(part, ends: ends, isASCII: isASCII) { return step }
        }
        return .needMoreBytes
    }

    /// The body ended, for any reason. Discards what is incomplete; the next byte is the first of
    /// another body. `lastEventID` and `reconnectionTime` stay.
    package mutating func endBody() {
        discardReported()
        heldMark = 0
        skipsLF = false
        position = .start
        lineBytes = 0
        failure = nil
        hasPendingID = false
    }

    /// Storage above this size is freed after each event.
    private static let keptStorage = 2 << 20

    private mutating func discardReported() {
        wasReported = false
        dataBytes.removeAll(keeping: EventStreamParser.keptStorage)
        dataIsASCII = true
        typeBytes.removeAll(keeping: EventStreamParser.keptStorage)
        scratch.removeAll(keeping: EventStreamParser.keptStorage)
    }

    /// Skips a byte order mark at the body's start. A line that only begins like one is skipped
    /// too: no field's name begins so.
    private mutating func skipMark(_ input: UnsafeRawBufferPointer, _ used: inout Int) {
        while let held = heldMark, used < input.count {
            if input[used] == UInt8(truncatingIfNeeded: 0xEFBBBF >> (16 - 8 * held)) {
                used += 1
                heldMark = held == 2 ? nil : held + 1
            } else {
                heldMark = nil
                if held > 0 { position = .skipped }
            }
        }
    }

    /// Takes bytes of a line; `ends` says that they are its last.
    private mutating func take(
        _ part: UnsafeRawBufferPointer, ends: Bool, isASCII: Bool
    ) throws(RealtimeError) -> Step? {
        var index = 0
        readName(part, &index)
        switch position {
        case .value(let field, let atStart):
            lineBytes += part.count
            try checkLine(lineBytes)
            if index < part.count {
                if atStart, part[index] == 0x20 { index += 1 }
                position = .value(field, atStart: false)
                try add(UnsafeRawBufferPointer(rebasing: part[index...]), to: field, isASCII)
            }
            return ends ? try finish(field) : nil
        case .name(let field, let matched):
            lineBytes += part.count
            guard ends else { return nil }
            if matched == field.name.utf8CodeUnitCount {
                try checkLine(lineBytes)
                begin(field)
                return try finish(field)
            }
        case .start, .skipped: break
        }
        if ends { endLine() }
        return nil
    }

    /// Takes a whole line of an event, as nearly all lines are.
    /// - Returns: false if it is another kind of line.
    @inline(__always)
    private mutating func takeWhole(
        _ line: UnsafeRawBufferPointer, _ isASCII: Bool
    ) throws(RealtimeError) -> Bool {
        guard let base = line.baseAddress, line.count >= 4 else { return false }
        let field: Field
        var start: Int
        // The first four bytes, in memory order.
        switch UInt32(littleEndian: base.loadUnaligned(as: UInt32.self)) {
        case 0x6174_6164 where line.count >= 5 && line[4] == 0x3A: (field, start) = (.data, 5)
        case 0x6E65_7665 where line.count >= 6 && line[4] == 0x74 && line[5] == 0x3A:
            (field, start) = (.event, 6)
        case let word where word & 0xFF_FFFF == 0x3A_6469: (field, start) = (.id, 3)
        default: return false
        }
        try checkLine(line.count)
        if start < line.count, line[start] == 0x20 { start += 1 }
        let value = UnsafeRawBufferPointer(start: base + start, count: line.count - start)
        switch field {
        case .data:
            try checkData(value.count)
            if !isASCII { dataIsASCII = false }
            dataBytes.append(value, then: 0x0A)
        case .event:
            try check(0, value.count, limits.name, "event type", .maxNameBytes)
            typeBytes.removeAll(keeping: EventStreamParser.keptStorage)
            typeBytes.append(value)
            typeIsASCII = isASCII
        case .id:
            try check(0, value.count, limits.name, "id", .maxNameBytes)
            guard !value.contains(0) else { break }
            pendingID.removeAll(keeping: EventStreamParser.keptStorage)
            pendingID.append(value)
            pendingIsASCII = isASCII
            hasPendingID = true
        case .retry, .comment: break
        }
        return true
    }

    /// Reads the name, up to the line's value or to a byte that shows that the line is not needed.
    private mutating func readName(_ part: UnsafeRawBufferPointer, _ index: inout Int) {
        while index < part.count {
            let byte = part[index]
            switch position {
            case .start:
                if byte == 0x3A, reportsComments {
                    begin(.comment)
                    position = .value(.comment, atStart: false)
                } else if let field = Field(firstByte: byte) {
                    position = .name(field, matched: 1)
                } else {
                    position = .skipped
                }
            case .name(let field, let matched):
                if matched < field.name.utf8CodeUnitCount {
                    let isNext = byte == field.name.utf8Start[matched]
                    position = isNext ? .name(field, matched: matched + 1) : .skipped
                } else if byte == 0x3A {
                    begin(field)
                    position = .value(field, atStart: true)
                } else {
                    position = .skipped
                }
            case .value, .skipped: return
            }
            index += 1
        }
    }

    private mutating func begin(_ field: Field) {
        switch field {
        case .data: break
        case .event: typeBytes.removeAll(keeping: EventStreamParser.keptStorage)
        case .id, .comment: scratch.removeAll(keeping: EventStreamParser.keptStorage)
        case .retry:
            digits = 0
            hasDigits = false
        }
    }

    private mutating func add(
        _ value: UnsafeRawBufferPointer, to field: Field, _ isASCII: Bool
    ) throws(RealtimeError) {
        switch field {
        case .data:
            try checkData(value.count)
            if !isASCII { dataIsASCII = false }
            dataBytes.append(value)
        case .event:
            try check(typeBytes.count, value.count, limits.name, "event type", .maxNameBytes)
            typeBytes.append(value)
            typeIsASCII = false
        case .id:
            try check(scratch.count, value.count, limits.name, "id", .maxNameBytes)
            scratch.append(value)
        case .comment: scratch.append(value)
        case .retry:
            for byte in value {
                guard byte.isASCIIDigit, let before = digits else {
                    digits = nil
                    break
                }
                hasDigits = true
                digits = min(before * 10 + Int64(byte & 0x0F), EventStreamParser.longestRetry)
            }
        }
    }

    /// Called at the end of a line with this field.
    private mutating func finish(_ field: Field) throws(RealtimeError) -> Step? {
        endLine()
        switch field {
        case .data:
            try checkData(0)
            dataBytes.append(0x0A)
        case .event: break
        case .id:
            if !scratch.readable.contains(0) {
                swap(&pendingID, &scratch)
                pendingIsASCII = false
                hasPendingID = true
            }
        case .retry:
            guard hasDigits, let digits else { return nil }
            reconnectionTime = digits
            return .retry(milliseconds: digits)
        case .comment:
            EventStreamParser.repair(&scratch, isASCII: false)
            return .comment(scratch.readable)
        }
        return nil
    }

    private mutating func endLine() {
        position = .start
        lineBytes = 0
    }

    /// Handles an empty line.
    /// - Returns: whether the block before it is an event, that is, had data.
    @inline(__always)
    private mutating func endBlock() -> Bool {
        hadID = hasPendingID
        if hasPendingID {
            hasPendingID = false
            idCount += 1
            swap(&idBytes, &pendingID)
            idBytes.terminate()
            idIsASCII = pendingIsASCII
            idIsRepaired = false
        }
        if dataBytes.isEmpty {
            typeBytes.removeAll(keeping: EventStreamParser.keptStorage)
            return false
        }
        dataBytes.removeLast(1)
        EventStreamParser.repair(&dataBytes, isASCII: dataIsASCII)
        if !typeBytes.isEmpty { EventStreamParser.repair(&typeBytes, isASCII: typeIsASCII) }
        wasReported = true
        return true
    }

    @inline(__always)
    private mutating func makeEvent() -> StreamEvent {
        let message = StreamEvent.message
        guard !typeBytes.isEmpty else {
            return StreamEvent(
                id: id, type: message, data: dataBytes.readable, hadID: hadID, isMessage: true)
        }
        let type = typeBytes.readable
        return StreamEvent(
            id: id, type: type, data: dataBytes.readable, hadID: hadID,
            isMessage: type.count == message.count && type.elementsEqual(message))
    }

    /// Makes it UTF-8 followed by a NUL. Each maximal ill-formed part becomes one U+FFFD (Unicode
    /// 15 §3.9).
    private static func repair(_ text: inout ByteBuffer, isASCII: Bool) {
        if !isASCII, !UTF8Validator.isValid(text.readable) {
            let repaired = String(decoding: text.readable, as: UTF8.self)
            text.removeAll(keeping: keptStorage)
            text.append(repaired)
        }
        text.terminate()
    }

    @inline(__always)
    private func checkLine(_ count: Int) throws(RealtimeError) {
        try check(0, count, limits.line, "line", .maxLineBytes)
    }

    /// - Parameter added: bytes that are to be appended to the data, perhaps with a line end.
    @inline(__always)
    private func checkData(_ added: Int) throws(RealtimeError) {
        try check(dataBytes.count, added, limits.data, "data", .maxEventBytes)
        guard dataBytes.hasMemory(for: added + 1) else {
            throw Memory.exceeded("an event", dataBytes.count + added)
        }
    }

    @inline(__always)
    private func check(
        _ before: Int, _ added: Int, _ limit: Int, _ what: StaticString,
        _ option: OptionOwner.Limit
    ) throws(RealtimeError) {
        guard limit > 0, added > limit - before else { return }
        throw RealtimeError(
            .tooLarge,
            "event stream's \(what) of more than \(limit) bytes"
                + limits.owner.mention(option, or: .maxMessageBytes))
    }
}
