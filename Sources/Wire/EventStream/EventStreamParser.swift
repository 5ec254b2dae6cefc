import CShims

/// Reads an event stream (HTML Living Standard §9.2.6), fed at any split: one event, comment or
/// reconnection time a call. It waits for no byte behind the one that ends a line, looks at each
/// byte once, and keeps none that no event needs.
package struct EventStreamParser: ~Copyable {
    /// The most it keeps of what a server sends; 0 is no limit.
    package struct Limits: Sendable {
        /// Bytes of one line without its end. Lines that nobody needs do not count.
        package var line = 64 << 20
        /// Bytes of one event's data.
        package var data = 64 << 20
        /// Bytes of an id, and of an event's type.
        package var name = 64 << 10

        package init() {}

        package init(line: Int, data: Int, name: Int) {
            self.line = line
            self.data = data
            self.name = name
        }
    }

    package enum Step {
        case needMoreBytes
        /// `type`, `data`, `id` and `hasID` are this event's until the next call.
        case event
        /// A comment: what follows the colon, made fit as UTF-8, with a NUL behind it.
        case comment(UnsafeRawBufferPointer)
        /// A valid reconnection time, told at the end of its line.
        case retry(milliseconds: Int64)
    }

    /// A longer reconnection time counts as this: one day.
    package static let longestRetry: Int64 = 86_400_000

    /// Where the line is that the input has reached.
    private enum Place {
        case start
        /// So many bytes of the name are there, and no other field's name begins so.
        case name(Field, matched: Int)
        /// Behind the colon; a space right behind it does not count.
        case value(Field, atStart: Bool)
        /// In a line that nobody needs.
        case skipped
    }

    fileprivate enum Field { case data, event, id, retry, comment }

    private let limits: Limits
    package var tellsComments: Bool

    /// How many bytes of a byte order mark are held; nil behind the body's first bytes.
    private var heldMark: Int? = 0
    private var skipsLF = false
    private var place = Place.start
    /// Bytes of the line that earlier inputs ended with.
    private var lineBytes = 0
    private var failure: RealtimeError?

    /// Each line's value with one LF behind it; a NUL instead of the last once it is told.
    private var dataBytes = ByteBuffer()
    private var dataIsASCII = true
    private var typeBytes = ByteBuffer()
    /// What is longer than a piece of the input: the id that is read, or a comment.
    private var scratch = ByteBuffer()
    /// Digits so far; nil when the value is not only digits.
    private var digits: Int64?
    private var hasDigits = false
    private var wasTold = false

    /// The id of the last block that ended, with a NUL behind it.
    private var idBytes = ByteBuffer()
    private var idIsASCII = true
    /// The id of the block that is read, when a line gave it one.
    private var pendingID = ByteBuffer()
    private var pendingIsASCII = true
    private var hasPendingID = false
    /// What `id` is when it is not ASCII, once it was asked for.
    private var idText = ByteBuffer()
    private var idIsFit = false

    /// How many blocks had an id: changes whenever `lastEventID` may have.
    package private(set) var idCount: UInt64 = 0
    /// Whether the event just told had an id line of its own.
    package private(set) var hasID = false
    /// The last valid reconnection time, in milliseconds.
    package private(set) var reconnectionTime: Int64?

    /// - Parameters:
    ///   - lastEventID: what the first event without an id carries.
    ///   - tellsComments: false skips comments without keeping a byte of them.
    package init(
        limits: Limits = Limits(), lastEventID: [UInt8] = [], tellsComments: Bool = false
    ) {
        self.limits = limits
        self.tellsComments = tellsComments
        lastEventID.withUnsafeBytes { idBytes.append($0) }
        idIsASCII = lastEventID.allSatisfy { $0 < 0x80 }
        idBytes.reserve(1)[0] = 0
    }

    /// Of the event just told: UTF-8, with a NUL behind it; "message" when the stream named none.
    package var type: UnsafeRawBufferPointer {
        typeBytes.isEmpty ? EventStreamParser.message : typeBytes.readable
    }

    /// Whether the event just told is of that type.
    package var isMessage: Bool {
        typeBytes.isEmpty || typeBytes.readable.elementsEqual(EventStreamParser.message)
    }

    /// Of the event just told: UTF-8, with a NUL behind it.
    package var data: UnsafeRawBufferPointer { dataBytes.readable }

    /// The id of the last block that ended: raw bytes, "" for none.
    package var lastEventID: [UInt8] { Array(idBytes.readable) }

    /// `lastEventID` as UTF-8, with a NUL behind it; valid until the next call of `next`.
    package var id: UnsafeRawBufferPointer {
        mutating get {
            if idIsASCII { return idBytes.readable }
            if !idIsFit {
                idText.removeAll(keeping: EventStreamParser.keptStorage)
                idText.append(idBytes.readable)
                EventStreamParser.makeFit(&idText, isASCII: false)
                idIsFit = true
            }
            return idText.readable
        }
    }

    /// Reads on from `used`, which it moves, up to the next step. What it does not use need not be
    /// shown again at the same place.
    package mutating func next(
        _ input: UnsafeRawBufferPointer, _ used: inout Int
    ) throws(RealtimeError) -> Step {
        if let failure { throw failure }
        if wasTold { forgetTold() }
        if heldMark != nil { skipMark(input, &used) }
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
            }
            do throws(RealtimeError) {
                if let step = try take(part, ends: ends, isASCII: isASCII) { return step }
            } catch {
                failure = error
                throw error
            }
        }
        return .needMoreBytes
    }

    /// The body ended, for whatever reason: what is unfinished is forgotten, and the next byte is
    /// the first of another body. `lastEventID` and `reconnectionTime` stay.
    package mutating func endBody() {
        forgetTold()
        heldMark = 0
        skipsLF = false
        place = .start
        lineBytes = 0
        failure = nil
        hasPendingID = false
        hasID = false
    }

    /// Storage above this goes back to the system after each event.
    private static let keptStorage = 2 << 20

    private static var message: UnsafeRawBufferPointer {
        let text: StaticString = "message"
        return UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    }

    private mutating func forgetTold() {
        wasTold = false
        dataBytes.removeAll(keeping: EventStreamParser.keptStorage)
        dataIsASCII = true
        typeBytes.removeAll(keeping: EventStreamParser.keptStorage)
        scratch.removeAll(keeping: EventStreamParser.keptStorage)
    }

    /// A byte order mark at the body's start goes; anything that only begins like one is a line
    /// that no field's name begins.
    private mutating func skipMark(_ input: UnsafeRawBufferPointer, _ used: inout Int) {
        while let held = heldMark, used < input.count {
            if input[used] == UInt8(truncatingIfNeeded: 0xEFBBBF >> (16 - 8 * held)) {
                used += 1
                heldMark = held == 2 ? nil : held + 1
            } else {
                heldMark = nil
                if held > 0 { place = .skipped }
            }
        }
    }

    /// Takes bytes of one line, the last ones when `ends`.
    private mutating func take(
        _ part: UnsafeRawBufferPointer, ends: Bool, isASCII: Bool
    ) throws(RealtimeError) -> Step? {
        if ends, case .start = place {
            if part.isEmpty { return dispatch() }
            if let (field, start) = EventStreamParser.wholeField(part) {
                try checkLine(part.count)
                begin(field)
                let value = start < part.count && part[start] == 0x20 ? start + 1 : start
                try add(UnsafeRawBufferPointer(rebasing: part[value...]), to: field, isASCII)
                return try finish(field)
            }
            if part.count >= 3, part[0] == 0x69, part[1] == 0x64, part[2] == 0x3A {
                let start = part.count > 3 && part[3] == 0x20 ? 4 : 3
                try checkLine(part.count)
                let value = UnsafeRawBufferPointer(rebasing: part[start...])
                try check(0, value.count, limits.name, "id", "max_name_bytes")
                if !value.contains(0) {
                    pendingID.removeAll(keeping: EventStreamParser.keptStorage)
                    pendingID.append(value)
                    pendingIsASCII = isASCII
                    hasPendingID = true
                }
                return nil
            }
        }
        var index = 0
        readName(part, &index)
        switch place {
        case .value(let field, let atStart):
            lineBytes += part.count
            try checkLine(lineBytes)
            if index < part.count {
                if atStart, part[index] == 0x20 { index += 1 }
                place = .value(field, atStart: false)
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

    /// The field of a whole line with a colon, and where its value begins: nearly all lines.
    @inline(__always)
    private static func wholeField(_ line: UnsafeRawBufferPointer) -> (Field, Int)? {
        guard line.count >= 6 else { return nil }
        // The first four bytes, as they lie in memory.
        switch UInt32(littleEndian: line.loadUnaligned(as: UInt32.self)) {
        case 0x6174_6164 where line[4] == 0x3A: return (.data, 5)
        case 0x6E65_7665 where line[4] == 0x74 && line[5] == 0x3A: return (.event, 6)
        case let word where word & 0xFF_FFFF == 0x3A_6469: return (.id, 3)
        default: return nil
        }
    }

    /// Goes on to the line's value, or to knowing that it has none to keep.
    private mutating func readName(_ part: UnsafeRawBufferPointer, _ index: inout Int) {
        while index < part.count {
            let byte = part[index]
            switch place {
            case .start:
                if byte == 0x3A, tellsComments {
                    begin(.comment)
                    place = .value(.comment, atStart: false)
                } else if let field = Field(firstByte: byte) {
                    place = .name(field, matched: 1)
                } else {
                    place = .skipped
                }
            case .name(let field, let matched):
                if matched < field.name.utf8CodeUnitCount {
                    let isNext = byte == field.name.utf8Start[matched]
                    place = isNext ? .name(field, matched: matched + 1) : .skipped
                } else if byte == 0x3A {
                    begin(field)
                    place = .value(field, atStart: true)
                } else {
                    place = .skipped
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
            try check(dataBytes.count, value.count, limits.data, "data", "max_event_bytes")
            if !isASCII { dataIsASCII = false }
            dataBytes.append(value)
        case .event:
            try check(typeBytes.count, value.count, limits.name, "event type", "max_name_bytes")
            typeBytes.append(value)
        case .id:
            try check(scratch.count, value.count, limits.name, "id", "max_name_bytes")
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

    /// The line with this field ended.
    private mutating func finish(_ field: Field) throws(RealtimeError) -> Step? {
        endLine()
        switch field {
        case .data:
            try check(dataBytes.count, 0, limits.data, "data", "max_event_bytes")
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
            EventStreamParser.makeFit(&scratch, isASCII: false)
            return .comment(scratch.readable)
        }
        return nil
    }

    private mutating func endLine() {
        place = .start
        lineBytes = 0
    }

    /// An empty line: the block before it is an event when it had data.
    private mutating func dispatch() -> Step? {
        hasID = hasPendingID
        if hasPendingID {
            hasPendingID = false
            idCount += 1
            swap(&idBytes, &pendingID)
            idBytes.reserve(1)[0] = 0
            idIsASCII = pendingIsASCII
            idIsFit = false
        }
        if dataBytes.isEmpty {
            typeBytes.removeAll(keeping: EventStreamParser.keptStorage)
            return nil
        }
        dataBytes.removeLast(1)
        EventStreamParser.makeFit(&dataBytes, isASCII: dataIsASCII)
        if !typeBytes.isEmpty { EventStreamParser.makeFit(&typeBytes, isASCII: false) }
        wasTold = true
        return .event
    }

    /// UTF-8 with a NUL behind it; what is ill-formed becomes U+FFFD, one for each maximal part
    /// (Unicode 15 §3.9).
    private static func makeFit(_ text: inout ByteBuffer, isASCII: Bool) {
        if !isASCII, !UTF8Validator.isValid(text.readable) {
            let repaired = String(decoding: text.readable, as: UTF8.self)
            text.removeAll(keeping: keptStorage)
            text.append(repaired)
        }
        text.reserve(1)[0] = 0
    }

    @inline(__always)
    private func checkLine(_ count: Int) throws(RealtimeError) {
        try check(0, count, limits.line, "line", "max_line_bytes")
    }

    @inline(__always)
    private func check(
        _ before: Int, _ added: Int, _ limit: Int, _ what: StaticString, _ option: StaticString
    ) throws(RealtimeError) {
        guard limit > 0, added > limit - before else { return }
        throw RealtimeError(
            .tooLarge, "event stream's \(what) of more than \(limit) bytes (\(option))")
    }
}

extension EventStreamParser.Field {
    /// The only field whose name begins with this byte.
    fileprivate init?(firstByte: UInt8) {
        switch firstByte {
        case UInt8(ascii: "d"): self = .data
        case UInt8(ascii: "e"): self = .event
        case UInt8(ascii: "i"): self = .id
        case UInt8(ascii: "r"): self = .retry
        default: return nil
        }
    }

    fileprivate var name: StaticString {
        switch self {
        case .data: "data"
        case .event: "event"
        case .id: "id"
        case .retry: "retry"
        case .comment: ""
        }
    }
}
