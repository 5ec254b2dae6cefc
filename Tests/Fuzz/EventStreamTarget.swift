/// Reads an event stream with our parser in pieces, and with the naive parser at once: both must
/// find the same events, comments and times, the same exceeded limit, and the same last id.
func fuzzEventStream(_ input: consuming Input) {
    let options = input.byte()
    let split = input.byte()
    var rules = NaiveEventStream.Rules()
    rules.reportsComments = options & 1 != 0
    if options & 2 != 0 { rules.line = Int(input.byte()) }
    if options & 4 != 0 { rules.data = Int(input.byte()) }
    if options & 8 != 0 { rules.name = Int(input.byte()) }
    let seed: [UInt8] = options & 16 != 0 ? [0x37] : []
    let bytes = input.rest

    let naive = NaiveEventStream(Array(bytes), rules, lastEventID: seed)
    let limits = EventStreamParser.Limits(line: rules.line, data: rules.data, name: rules.name)
    var parser = EventStreamParser(
        limits: limits, lastEventID: seed, reportsComments: rules.reportsComments)
    // Leftovers of an earlier body must not matter.
    if options & 32 != 0 { _ = read([Array("data:x\nid:4\r".utf8)], &parser) }
    parser.endBody()
    let pieces = bytes.pieces(by: split).map { Array($0) }
    let (told, isTooLarge) = read(pieces, &parser)
    require(isTooLarge == naive.isTooLarge, "too large: \(isTooLarge), naively the opposite")
    require(told.count == naive.told.count, "reported \(told), naively \(naive.told)")
    for (mine, other) in zip(told, naive.told) { require(mine == other, "\(mine), not \(other)") }
    parser.endBody()
    require(parser.lastEventID == naive.lastEventID, "the id is \(parser.lastEventID)")
    require(
        parser.reconnectionTime == naive.reconnectionTime,
        "the time is \(String(describing: parser.reconnectionTime))")
}

private func read(
    _ pieces: [[UInt8]], _ parser: inout EventStreamParser
) -> (told: [NaiveEventStream.Told], isTooLarge: Bool) {
    var told: [NaiveEventStream.Told] = []
    for piece in pieces {
        var used = 0
        do throws(RealtimeError) {
            while try step(piece, &used, &parser, &told) {}
        } catch {
            require(error.code == .tooLarge, error.description)
            return (told, true)
        }
        require(used == piece.count, "\(used) bytes used of \(piece.count)")
    }
    return (told, false)
}

/// Each step gets the rest at another address.
private func step(
    _ piece: [UInt8], _ used: inout Int, _ parser: inout EventStreamParser,
    _ told: inout [NaiveEventStream.Told]
) throws(RealtimeError) -> Bool {
    let rest = Array(piece[used...])
    var usedNow = 0
    let result = rest.withUnsafeBytes { bytes -> Result<Bool, RealtimeError> in
        do throws(RealtimeError) {
            switch try parser.next(bytes, &usedNow) {
            case .needMoreBytes: return .success(false)
            case .event(let event):
                told.append(
                    .event(
                        type: text(event.type), data: text(event.data), id: text(event.id),
                        hadID: event.hadID))
            case .comment(let comment): told.append(.comment(text(comment)))
            case .retry(let milliseconds): told.append(.retry(milliseconds))
            }
            return .success(true)
        } catch {
            return .failure(error)
        }
    }
    used += usedNow
    return try result.get()
}

private func text(_ bytes: UnsafeRawBufferPointer) -> String {
    require(bytes.baseAddress?.load(fromByteOffset: bytes.count, as: UInt8.self) == 0, "no NUL")
    let text = String(validating: bytes, as: UTF8.self)
    require(text != nil, "text that is not UTF-8")
    return text ?? ""
}
