import CShims

/// br (RFC 7932), decoded by libbrotlidec. Its window is at most 16 MiB; the extension for larger
/// ones is off.
final class BrotliStream: CodedStream {
    private let decoder: UnsafeMutableRawPointer
    private(set) var isWhole = false

    convenience init?() {
        guard let decoder = shim_brotli_new() else { return nil }
        self.init(decoder)
    }

    private init(_ decoder: UnsafeMutableRawPointer) { self.decoder = decoder }

    deinit { shim_brotli_free(decoder) }

    func decode(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) -> CodedStep {
        guard !isWhole else {
            return CodedStep(fault: input.isEmpty ? nil : "data is followed by something else")
        }
        let done = shim_brotli_decode(
            decoder, input.baseAddress, input.count, output.baseAddress, output.count)
        var step = CodedStep(consumed: done.consumed, produced: done.produced)
        if done.state == SHIM_DECODING_ENDED { isWhole = true }
        if done.state == SHIM_DECODING_FAILED { step.fault = "data: \(text(done.failure))" }
        return step
    }
}

/// zstd (RFC 8878), decoded by libzstd: any number of frames.
final class ZstdStream: CodedStream {
    private let decoder: UnsafeMutableRawPointer
    private(set) var isWhole = false

    /// The exponent of the largest window that HTTP allows, 8 MiB (RFC 9659 §3).
    private static let windowLog: Int32 = 23
    /// libzstd's error for a larger window.
    private static let tooMuch = "Frame requires too much memory for decoding"

    convenience init?() {
        guard let decoder = shim_zstd_new(ZstdStream.windowLog) else { return nil }
        self.init(decoder)
    }

    private init(_ decoder: UnsafeMutableRawPointer) { self.decoder = decoder }

    deinit { shim_zstd_free(decoder) }

    func decode(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) -> CodedStep {
        var step = CodedStep()
        // libzstd returns at the end of each frame.
        repeat {
            let done = shim_zstd_decode(
                decoder, input.baseAddress.map { $0 + step.consumed }, input.count - step.consumed,
                output.baseAddress.map { $0 + step.produced }, output.count - step.produced)
            step.consumed += done.consumed
            step.produced += done.produced
            if done.state == SHIM_DECODING_FAILED {
                let words = text(done.failure)
                step.fault =
                    words == ZstdStream.tooMuch
                    ? "window is larger than 8 MiB" : "data: \(words)"
            } else if done.consumed + done.produced > 0 {
                isWhole = done.state == SHIM_DECODING_ENDED
            } else {
                return step
            }
        } while step.fault == nil && step.consumed < input.count && step.produced < output.count
        return step
    }
}

private func text(_ failure: UnsafePointer<CChar>?) -> String {
    failure.map { String(cString: $0) } ?? "not valid"
}
