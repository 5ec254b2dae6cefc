import CShims
package import Session
import Synchronization
package import Wire

/// A long poll on a loop: does the I/O for `LongPollSession`. Any thread may call it; its work
/// (LongPollDriver.swift) runs on the loop's thread.
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`).
package final class LongPollConnection: HTTPSource<LongPollSession, LongPollHandlers>,
    @unchecked Sendable
{
    // Any thread.
    private let sharedID = Mutex("")

    // The loop's owner only.
    /// The body of the response as it arrives.
    @exclusivity(unchecked) var body = ByteBuffer()
    /// The response that is being delivered, or waits for the end of a pause.
    @exclusivity(unchecked) var delivery: LongPollDelivery?
    var isDelivering = false
    /// The argument of the `open` handler, until it is called.
    var opening: Shared<Opened>?
    /// `restart` was called while a response was being delivered.
    var restartsAfterDelivery = false
    /// How many messages of the response were delivered.
    @exclusivity(unchecked) var deliveredCount = 0

    package convenience init(url: String, on loop: Loop) throws(RealtimeError) {
        try loop.checkUsable()
        self.init(try LongPollConfiguration(url: url), on: loop)
    }

    // MARK: Any thread

    /// The id of the last message delivered, or of the option; "" for none.
    package var lastEventID: String { sharedID.withLock { $0 } }

    func publish(id: String) { sharedID.withLock { $0 = id } }

    override func optionsChanged(_ configuration: LongPollConfiguration) {
        publish(id: configuration.lastEventID ?? "")
    }

    /// Called in the message handler: this message contains an id, which overrides the response's.
    func found(id: String) { session?.found(id: id) }

    /// Called in the message handler: this batch contains no message.
    func foundNothing() { deliveredCount -= 1 }

    package override func start() throws(RealtimeError) {
        try checkOpen()
        let session = try options.start(Self.begun) { configuration throws(RealtimeError) in
            try LongPollSession(configuration)
        }
        // In the next turn, because a wait for the network would be reported inside this call.
        loop.enqueue { [self] in begin(session) }
    }

    /// Drops the current poll and polls at once; also used when fresh credentials were set.
    package func restart() throws(RealtimeError) {
        try checkRunning()
        // In the next turn, because an immediate failure would be reported inside this call.
        loop.enqueue { [self] in restartNow() }
    }

    // MARK: HTTPSource, on the loop's thread

    override class var kind: String { "long poll" }
    override class var purpose: String { "polling" }

    override func dropTransfer() {
        super.dropTransfer()
        body.removeAll(keeping: LongPollConnection.keptStorage)
    }

    override func answered(_ head: ResponseHead, body: [UInt8]?, requestStarted: Instant?) {
        let answer = session?.received(
            head, body: body ?? [], requestStarted: requestStarted,
            canAuthorize: handlers.credentials != nil, now: Loop.now())
        switch answer {
        case nil: return
        case .read:
            if body != nil { return transferEnded(nil) }
            noteOpening(head)
            if session?.keepsBody == false { transfer?.stopDecoding() }
            updateTimer()
        case .again:
            Log.write(.debug, "redirected by \(head.status)")
            send()
        case .unauthorized: askCredentials(HTTPResponse(head, body: body ?? []))
        case .failed(let failure):
            dropTransfer()
            report(failure)
        }
    }

    override func received(_ bytes: UnsafeRawBufferPointer, by transfer: HTTPTransfer) {
        guard transfer === self.transfer, !takeRefusal(bytes), let session else { return }
        do throws(RealtimeError) {
            let continues = try self.session?.received(bytes, now: Loop.now()) ?? false
            if session.keepsBody {
                guard body.hasMemory(for: bytes.count) else {
                    throw Memory.exceeded(
                        "the response of \(configuration.url.displayName)",
                        body.count + bytes.count)
                }
                body.append(bytes)
            }
            updateTimer()
            // The body is not wanted; do not read an endless one.
            if !continues { transferEnded(nil) }
        } catch {
            giveUp(error)
        }
    }

    override func ended(_ failure: HTTPFailure?, by transfer: HTTPTransfer) {
        guard transfer === self.transfer, !endRefusal() else { return }
        transferEnded(failure)
    }

    override func transferEnded(_ failure: HTTPFailure?) {
        let before = session?.state
        if failure != nil { noteNetwork() }
        let outcome = session?.ended(
            failure, now: Loop.now(), wallClock: Loop.wallClock(), random: randomFraction())
        transfer?.close()
        transfer = nil
        if case .message? = outcome { return prepareDelivery() }
        noteState(before)
        guard !isClosed else { return }
        switch outcome {
        case nil, .message: return
        case .nothing: dropTransfer()
        case .failed(let failure):
            dropTransfer()
            report(failure)
        }
        noteWait()
        updateTimer()
    }

    override func note(_ failure: HTTPSourceFailure) {
        guard let session else { return }
        setState(session.state)
        publish(id: session.lastEventID)
    }

    override func timeReached(_ now: Instant) {
        guard !isClosed, !refusalReached(now) else { return }
        // Data that arrived in time is in time, however long its decoding takes.
        if transfer?.hasCome == true { session?.noteProgress(now) }
        let before = session?.state
        let event = session?.timeReached(
            now, requestStarted: transfer?.requestStarted, random: randomFraction())
        switch event {
        case nil, .nothing: updateTimer()
        case .begin: attempt()
        case .held:
            noteOpening(nil)
            dropConnection()
            updateTimer()
            noteState(before)
            noteWait()
        case .failed(let failure):
            dropConnection()
            report(failure)
        }
    }

    override func pauseChanged() { if mayDeliver { deliver() } }

    override func closeNow() {
        delivery = nil
        super.closeNow()
    }
}
