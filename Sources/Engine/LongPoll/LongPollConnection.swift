import CShims
package import Session
import Synchronization
package import Wire

/// A long poll on a loop: the hands to `LongPollSession`'s brain. Calls come from any thread; its
/// own work (LongPollDriver.swift) happens on the loop's.
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`).
package final class LongPollConnection: HTTPSource<LongPollSession, LongPollHandlers>,
    @unchecked Sendable
{
    // Any thread.
    private let sharedID = Mutex("")

    // The loop's owner only.
    /// The answer's body as it comes.
    @exclusivity(unchecked) var body = ByteBuffer()
    /// What is being delivered, or waits for the end of a pause.
    @exclusivity(unchecked) var delivery: LongPollDelivery?
    var isDelivering = false
    /// What the open handler is to be told, until it is.
    var opening: Shared<Opened>?
    /// `restart` was called while an answer was being delivered.
    var restartsAfterDelivery = false
    /// Messages of the answer that were told.
    @exclusivity(unchecked) var told = 0

    package convenience init(url: String, on loop: Loop) throws(RealtimeError) {
        try loop.checkUsable()
        self.init(try LongPollConfiguration(url: url), on: loop)
    }

    // MARK: Any thread

    /// Of the last message delivered, or of the option; "" for none.
    package var lastEventID: String { sharedID.withLock { $0 } }

    func publish(id: String) { sharedID.withLock { $0 = id } }

    override func optionsChanged(_ configuration: LongPollConfiguration) {
        publish(id: configuration.lastEventID ?? "")
    }

    /// In the message handler: the message carries an id inside, which goes before the answer's.
    func found(id: String) { session?.found(id: id) }

    /// In the message handler: the message is a batch without one.
    func foundNothing() { told -= 1 }

    package override func start() throws(RealtimeError) {
        try checkOpen()
        let session = try options.start(Self.begun) { configuration throws(RealtimeError) in
            try LongPollSession(configuration)
        }
        loop.perform { [self] in begin(session) }
    }

    /// Drops the poll in flight and polls at once; also when credentials have come.
    package func restart() throws(RealtimeError) {
        try checkRunning()
        // In the next turn: what fails at once would be told inside this call.
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
            tell(failure)
        }
    }

    override func received(_ bytes: UnsafeRawBufferPointer, by transfer: HTTPTransfer) {
        guard transfer === self.transfer, !takeRefusal(bytes), let session else { return }
        do throws(RealtimeError) {
            let goesOn = try self.session?.received(bytes, now: Loop.now()) ?? false
            if session.keepsBody { body.append(bytes) }
            updateTimer()
            // What nobody wants is not read for ever.
            if !goesOn { transferEnded(nil) }
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
            tell(failure)
        }
        updateTimer()
    }

    override func note(_ failure: HTTPSourceFailure) {
        guard let session else { return }
        setState(session.state)
        publish(id: session.lastEventID)
    }

    override func timeReached(_ now: Instant) {
        guard !isClosed, !refusalReached(now) else { return }
        // What has come in time is in time, however long its decoding takes.
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
        case .failed(let failure):
            dropConnection()
            tell(failure)
        }
    }

    override func pauseChanged() { if mayDeliver { deliver() } }

    override func closeNow() {
        delivery = nil
        super.closeNow()
    }
}
