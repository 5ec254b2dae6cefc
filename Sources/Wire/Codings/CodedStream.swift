/// The decoder of one coding. Each call consumes as much input and writes as much output as it can.
/// The decoder keeps what it needs, and can be fed in pieces of any size.
protocol CodedStream: AnyObject {
    /// Must not be called again after a failure.
    func decode(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) -> CodedStep
    /// Whether the input may end here.
    var isWhole: Bool { get }
}

struct CodedStep {
    var consumed = 0
    var produced = 0
    /// The fault in the input after what was produced; nil if there is none.
    var fault: String?
}
