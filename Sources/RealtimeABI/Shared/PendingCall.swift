import CShims
import Engine
import Session
import Wire

// C's calls that are answered later. Nothing here is exported.

/// The answer to a call.
///
/// Unchecked because it does not change once it is set, and neither does what it owns.
final class CallAnswer: @unchecked Sendable {
    /// Of a request: what `owner` owns.
    let response: OpaquePointer?
    /// Of a Meteor call: freed with the answer.
    let outcome: UnsafeMutablePointer<rt_ddp_outcome>?
    fileprivate let error: RealtimeError?
    private let owner: AnyObject?

    init(
        response: OpaquePointer? = nil, of owner: AnyObject? = nil,
        outcome: UnsafeMutablePointer<rt_ddp_outcome>? = nil, error: RealtimeError?
    ) {
        self.response = response
        self.owner = owner
        self.outcome = outcome
        self.error = error
    }

    deinit { Inbox.free(outcome) }
}

typealias CallAnswerer = Answer<CallAnswer>

/// A call for whose answer threads can wait.
final class PendingCall: Handle {
    static let name = "call"
    private let loop: Loop
    private let waiter: Waiter<CallAnswer>
    var owningLoop: Loop? { loop }

    private init(on loop: Loop) {
        self.loop = loop
        waiter = Waiter(on: loop)
    }

    /// - Returns: a call if the program asked for one.
    static func wanted(
        _ out: UnsafeMutablePointer<rt_call?>?, on loop: Loop
    ) -> PendingCall? {
        out == nil ? nil : PendingCall(on: loop)
    }

    /// What sets the answer. The call's handlers must own it alone: if they are released, no answer
    /// comes any more.
    var answerer: CallAnswerer { Answer(waiter) }

    /// nil before it.
    var answer: CallAnswer? { waiter.result }

    func wait(_ timeout: Duration?) throws(RealtimeError) {
        if timeout != .zero { try loop.checkMayWait() }
        if let error = try waiter.wait(timeout).error { throw error }
    }

    func interrupt() throws(RealtimeError) {
        try loop.checkNotForked()
        waiter.interrupt()
    }

    func close() { waiter.end() }

    func export(to out: UnsafeMutablePointer<rt_call?>?) {
        out?.pointee = PendingCall.export(self)
    }
}
