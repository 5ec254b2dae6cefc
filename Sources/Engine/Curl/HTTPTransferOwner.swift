import Session
import Wire

/// Who waits for an exchange. All are called on the loop's thread, outside of libcurl, in this
/// order: head once, body any number of times, ended once.
protocol HTTPTransferOwner: AnyObject {
    /// The final answer's head has come.
    func received(_ head: ResponseHead, by transfer: HTTPTransfer)
    /// Bytes of the body, decoded; valid until this returns.
    func received(_ body: UnsafeRawBufferPointer, by transfer: HTTPTransfer)
    /// The whole answer has come in time. Its body is still being decoded or delivered.
    func answerCame(by transfer: HTTPTransfer)
    /// It is over; nil when the answer is whole.
    func ended(_ failure: HTTPFailure?, by transfer: HTTPTransfer)
    /// How far it has come, for those who asked.
    func progressed(_ progress: HTTPTransfer.Progress, by transfer: HTTPTransfer)
    /// More of a streamed request body is wanted: `HTTPTransfer.upload`.
    func wantsBody(of transfer: HTTPTransfer)
    /// The loop is over.
    func loopClosed()
}

extension HTTPTransferOwner {
    func answerCame(by transfer: HTTPTransfer) {}
    func progressed(_ progress: HTTPTransfer.Progress, by transfer: HTTPTransfer) {}
    func wantsBody(of transfer: HTTPTransfer) {}
}
