import Glibc

/// What libFuzzer calls for each input. One program holds all targets, since they share the whole
/// of Wire; FUZZ_TARGET names the one to try.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    target(Input(UnsafeRawBufferPointer(start: data, count: count)))
    return 0
}

private let target: @Sendable (consuming Input) -> Void = {
    let name = getenv("FUZZ_TARGET").map { String(cString: $0) }
    switch name {
    case "differential": return fuzzDifferential
    case "extension": return fuzzExtension
    case "frames": return fuzzFrames
    case "handshake": return fuzzHandshake
    case "inflate": return fuzzInflate
    default: fatalError("FUZZ_TARGET is \(name ?? "not set")")
    }
}()

/// The bytes of one try: a few decide how it goes, the rest is what the peer sends.
struct Input {
    private var bytes: UnsafeRawBufferPointer.SubSequence

    init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes[...]
    }

    /// The next byte, or 0 at the end.
    mutating func byte() -> UInt8 { bytes.popFirst() ?? 0 }

    /// What is left.
    var rest: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes) }
}

extension UnsafeRawBufferPointer {
    /// The bytes in pieces of `size`; always one at least.
    func pieces(of size: Int) -> [UnsafeRawBufferPointer] {
        if isEmpty { return [self] }
        return stride(from: 0, to: count, by: size).map {
            UnsafeRawBufferPointer(rebasing: self[$0..<Swift.min($0 + size, count)])
        }
    }
}

/// Ends the try as a finding when a property does not hold.
func require(_ holds: Bool, _ property: @autoclosure () -> String) {
    if !holds { fatalError(property()) }
}
