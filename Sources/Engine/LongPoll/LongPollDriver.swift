import CShims
import Session
import Synchronization
import Wire

// What a long poll does on its loop's thread.
extension LongPollConnection: HTTPSource {
    static var purpose: String { "polling" }

    // MARK: Polls

    func begin(_ session: LongPollSession) {
        guard !isClosed, self.session == nil else { return }
        takeHandlers()
        takeOptions()
        var session = session
        session.setOnline(isReachable, now: Loop.now(), random: 0)
        session.start(now: Loop.now())
        self.session = session
        updateTimer()
    }

    func transferBegan() {}

    func dropTransfer() {
        transfer?.close()
        transfer = nil
        body.removeAll(keeping: LongPollConnection.keptStorage)
    }

    /// Storage of a body above this goes back to the system after each poll.
    private static let keptStorage = 64 << 10

    // MARK: HTTPTransferOwner

    func received(_ head: ResponseHead, by transfer: HTTPTransfer) {
        guard transfer === self.transfer, !isClosed else { return }
        let answer = session?.received(
            head, requestStarted: transfer.requestStarted,
            canAuthorize: handlers.credentials != nil, now: Loop.now())
        switch answer {
        case nil: return
        case .read: updateTimer()
        case .again:
            Log.write(.debug, "redirected by \(head.status)")
            send()
        case .unauthorized: askCredentials(head)
        case .failed(let failure):
            dropTransfer()
            tell(failure)
        }
    }

    func received(_ bytes: UnsafeRawBufferPointer, by transfer: HTTPTransfer) {
        guard transfer === self.transfer, let session else { return }
        do throws(RealtimeError) {
            let goesOn = try self.session?.received(bytes.count, now: Loop.now()) ?? false
            if session.keepsBody { body.append(bytes) }
            updateTimer()
            // What nobody wants is not read for ever.
            if !goesOn { transferEnded(nil) }
        } catch {
            giveUp(error)
        }
    }

    func ended(_ failure: HTTPFailure?, by transfer: HTTPTransfer) {
        guard transfer === self.transfer else { return }
        transferEnded(failure)
    }

    func transferEnded(_ failure: HTTPFailure?) {
        let before = session?.state
        let outcome = session?.ended(
            failure, now: Loop.now(), wallClock: Loop.wallClock(), random: randomFraction())
        transfer?.close()
        transfer = nil
        if case .message? = outcome, !prepareDelivery() { return }
        noteState(before)
        guard !isClosed else { return }
        switch outcome {
        case nil: return
        case .message: deliver()
        case .nothing: dropTransfer()
        case .failed(let failure):
            dropTransfer()
            tell(failure)
        }
        updateTimer()
    }

    private func noteState(_ before: LongPollState?) {
        guard let state = session?.state, !isClosed else { return }
        setState(state)
        guard state == .open, before != .open else { return }
        Log.write(.info, "\(configuration.url.displayName): the server answers polls")
        handlers.open?()
    }

    // MARK: Messages

    /// - Returns: false for what is not built as it says, which is told.
    private func prepareDelivery() -> Bool {
        guard let session else { return false }
        var whole = ByteBuffer()
        swap(&whole, &body)
        told = 0
        do throws(RealtimeError) {
            delivery = try LongPollDelivery(
                whole, contentType: session.contentType, id: session.messageID,
                before: session.lastEventID)
        } catch {
            let failure = self.session?.rejected(
                error, now: Loop.now(), random: randomFraction())
            if let failure { tell(failure) }
            return false
        }
        return true
    }

    /// Tells what has come, until it is closed or paused; then the cursor moves.
    func deliver() {
        guard delivery != nil, !isDelivering else { return }
        isDelivering = true
        var current = delivery.take()
        while current?.isEmpty == false, mayDeliver {
            told += 1
            current?.tell { handlers.message?($0) }
        }
        isDelivering = false
        if current?.isEmpty == false {
            if !isClosed { delivery = consume current }
            return
        }
        session?.delivered(isEmpty: told == 0, now: Loop.now())
        if let id = session?.lastEventID { publish(id: id) }
        updateTimer()
    }

    // MARK: Telling

    func note(_ failure: HTTPSourceFailure) {
        guard let session else { return }
        setState(session.state)
        publish(id: session.lastEventID)
    }

    func setClosed() { setState(.closed) }

    // MARK: Time

    func updateTimer() {
        if let next = session?.wakeUp {
            loop.arm(timer, self, at: next)
        } else {
            loop.disarm(timer)
        }
    }

    func timeReached(_ now: Instant) {
        guard !isClosed else { return }
        let before = session?.state
        let event = session?.timeReached(
            now, requestStarted: transfer?.requestStarted, random: randomFraction())
        switch event {
        case nil, .nothing: updateTimer()
        case .begin: attempt()
        case .held:
            dropConnection()
            updateTimer()
            noteState(before)
        case .failed(let failure):
            dropConnection()
            tell(failure)
        }
    }

    // MARK: The user

    func restartNow() {
        guard !isClosed, let state = session?.state, state != .closed else { return }
        // What came is delivered first: dropped, it would be asked for again.
        guard delivery == nil, !isDelivering else { return }
        dropConnection()
        session?.restart(now: Loop.now())
        updateTimer()
    }

    func closeNow() {
        session?.close()
        dropTransfer()
        delivery = nil
        finish()
    }

    func loopClosed() {
        transfer = nil
        gate.close()
        setState(.closed)
        dropHandlers()
    }
}
