import CShims
import Session
import Synchronization
import Wire

// What a long poll does on its loop's thread.
extension LongPollConnection: HTTPSource {
    static var purpose: String { "polling" }
    static var mayEndInCoding: Bool { false }

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
        upkeep.refusal = nil
        body.removeAll(keeping: LongPollConnection.keptStorage)
    }

    /// Storage of a body above this goes back to the system after each poll.
    private static let keptStorage = 64 << 10

    // MARK: HTTPTransferOwner

    func answered(_ head: ResponseHead, body: [UInt8]?, requestStarted: Instant?) {
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

    func received(_ bytes: UnsafeRawBufferPointer, by transfer: HTTPTransfer) {
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

    func ended(_ failure: HTTPFailure?, by transfer: HTTPTransfer) {
        guard transfer === self.transfer, !endRefusal() else { return }
        transferEnded(failure)
    }

    func transferEnded(_ failure: HTTPFailure?) {
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

    private func noteState(_ before: LongPollState?) {
        guard let state = session?.state, !isClosed else { return }
        setState(state)
        guard state == .open, before != .open else { return }
        log(.info, "\(configuration.url.displayName): the server answers polls")
        let opened = opening.take()
        handlers.open?(opened?.value ?? Opened())
    }

    /// Keeps what the open handler is told when the answer has proved good.
    /// - Parameter head: nil for a poll that is held without an answer.
    private func noteOpening(_ head: ResponseHead?) {
        guard state != .open, handlers.open != nil else { return }
        opening = Shared(opened(head))
    }

    // MARK: Messages

    /// Messages of a batch that are checked, or delivered, in one turn of the loop; of long ones
    /// fewer are delivered, since who takes them may read all of their bytes.
    private static let messagesPerTurn = 1024

    private func prepareDelivery() {
        guard let session else { return }
        var whole = ByteBuffer()
        swap(&whole, &body)
        told = 0
        do throws(RealtimeError) {
            delivery = try LongPollDelivery(
                whole, contentType: session.contentType, id: session.messageID,
                before: session.lastEventID)
            deliver()
        } catch {
            reject(error)
        }
    }

    /// The answer is malformed: it is asked for once more.
    private func reject(_ error: RealtimeError) {
        let failure = session?.rejected(error, now: Loop.now(), random: randomFraction())
        if let failure { tell(failure) }
        restartIfAsked()
    }

    /// Delivers what has come, some of it in each turn, until the poll is closed or paused. Then
    /// the cursor moves.
    func deliver() {
        guard delivery != nil, !isDelivering else { return }
        isDelivering = true
        var current = delivery.take()
        var left = LongPollConnection.messagesPerTurn
        var bytesLeft = Loop.bytesPerTurn
        do throws(RealtimeError) {
            try prepare(&current)
            while current?.isChecked == true, current?.isEmpty == false, mayDeliver, left > 0,
                bytesLeft > 0
            {
                left -= 1
                told += 1
                current?.tell {
                    bytesLeft -= $0.data.count
                    handlers.message?($0)
                }
            }
        } catch {
            isDelivering = false
            return reject(error)
        }
        isDelivering = false
        if current?.isEmpty == false {
            guard !isClosed else { return }
            delivery = consume current
            // In the next turn, so that others have theirs in between.
            if mayDeliver { loop.enqueue { [weak self] in self?.deliver() } }
            return
        }
        session?.delivered(isEmpty: told == 0, now: Loop.now())
        if let id = session?.lastEventID { publish(id: id) }
        updateTimer()
        restartIfAsked()
    }

    /// Checks what has come. Once it is known to be whole, the server counts as open.
    private func prepare(_ current: inout LongPollDelivery?) throws(RealtimeError) {
        guard told == 0 else { return }
        try current?.check(parts: LongPollConnection.messagesPerTurn)
        if current?.isChecked == true { noteState(state) }
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
        if let next = upkeep.refusal?.deadline ?? session?.wakeUp {
            loop.arm(timer, self, at: next)
        } else {
            loop.disarm(timer)
        }
    }

    func timeReached(_ now: Instant) {
        guard !isClosed else { return }
        if let refusal = upkeep.refusal {
            if now < refusal.deadline || !endRefusal() { updateTimer() }
            return
        }
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

    // MARK: The user

    func restartNow() {
        guard !isClosed, let state = session?.state, state != .closed else { return }
        // What came is delivered first: dropped, it would be asked for again.
        restartsAfterDelivery = delivery != nil || isDelivering
        if restartsAfterDelivery { return }
        dropConnection()
        session?.restart(now: Loop.now())
        updateTimer()
    }

    /// Makes up for a restart that came during a delivery.
    private func restartIfAsked() {
        if restartsAfterDelivery { restartNow() }
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
