import Glibc

/// libFuzzer calls this for each input. One program has all targets, because they share all of
/// Wire, Documents and Session; FUZZ_TARGET names the one to run.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    target(Input(UnsafeRawBufferPointer(start: data, count: count)))
    return 0
}

private let target: @Sendable (consuming Input) -> Void = {
    let name = getenv("FUZZ_TARGET").map { String(cString: $0) }
    switch name {
    case "codings": return fuzzContentDecoder
    case "date": return fuzzDate
    case "ddp": return fuzzDDP
    case "differential": return fuzzDifferential
    case "ejson": return fuzzEJSON
    case "eventstream": return fuzzEventStream
    case "extension": return fuzzExtension
    case "frames": return fuzzFrames
    case "handshake": return fuzzHandshake
    case "idfile": return fuzzIDFile
    case "inflate": return fuzzInflate
    case "json": return fuzzJSON
    case "location": return fuzzLocation
    case "modifier": return fuzzModifier
    case "multipart": return fuzzMultipart
    case "outbox": return fuzzOutbox
    case "retryafter": return fuzzRetryAfter
    case "netlink": return fuzzNetlink
    case "pusheranswer": return fuzzPusherAnswer
    case "pusherencrypted": return fuzzPusherEncrypted
    case "pusherenvelope": return fuzzPusherEnvelope
    case "pusherpresence": return fuzzPusherPresence
    case "selector": return fuzzSelector
    case "sockjs": return fuzzSockJS
    case "spreadbotframe": return fuzzSpreadbotFrame
    case "spreadbotjson": return fuzzSpreadbotEnvelope
    case "tokens": return fuzzTokens
    default: fatalError("FUZZ_TARGET is \(name ?? "not set")")
    }
}()

/// The bytes of one input: the first few choose options, the rest comes from the peer.
struct Input {
    private var bytes: UnsafeRawBufferPointer.SubSequence

    init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes[...]
    }

    /// The next byte, or 0 at the end.
    mutating func byte() -> UInt8 { bytes.popFirst() ?? 0 }

    /// The remaining bytes.
    var rest: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes) }
}

extension UnsafeRawBufferPointer {
    /// The bytes in pieces of `size`; at least one piece.
    func pieces(of size: Int) -> [UnsafeRawBufferPointer] {
        if isEmpty { return [self] }
        return stride(from: 0, to: count, by: size).map {
            UnsafeRawBufferPointer(rebasing: self[$0..<Swift.min($0 + size, count)])
        }
    }

    /// Pieces whose sizes depend on `split`: all at once for 0, a byte each for 1, small and large
    /// ones in turn otherwise.
    func pieces(by split: UInt8) -> [UnsafeRawBufferPointer] {
        if split < 2 { return pieces(of: split == 0 ? Swift.max(count, 1) : 1) }
        var pieces: [UnsafeRawBufferPointer] = []
        var state = UInt32(split)
        var start = 0
        while start < count {
            state = state &* 1_664_525 &+ 1_013_904_223
            let reach = state >> 30 == 0 ? 300 : 12
            let size = Swift.min(count - start, 1 + Int(state >> 16) % reach)
            pieces.append(UnsafeRawBufferPointer(rebasing: self[start..<(start + size)]))
            start += size
        }
        return pieces
    }
}

/// Reports a finding if the property does not hold.
func require(_ holds: Bool, _ property: @autoclosure () -> String) {
    if !holds { fatalError(property()) }
}
