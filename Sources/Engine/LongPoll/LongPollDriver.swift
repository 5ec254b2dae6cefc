import CShims
import Session
import Synchronization
import Wire

// The work of a long poll on its loop's thread.
extension LongPollConnection {
    func begin(_ session: LongPollSession) {
        guard !isClosed, self.session == nil else { return }
        takeHandlers()
        takeOptions()
        var session = session
        session.setOnline(isReachable, now: Loop.now(), random: 0)
        session.start(now: Loop.now())
        self.session = session
        noteWait()
        if !isClosed { updateTimer() }
    }

    /// A larger body's storage is freed after each poll.
    static let keptStorage = 64 << 10

    func noteState(_ before: LongPollState?) {
        guard let state = session?.state, !isClosed else { return }
        setState(state)
        guard state == .open, before != .open else { return }
        log(.info, "\(configuration.url.displayName): the server answers polls")
        let opened = opening.take()
        handlers.open?(opened?.value ?? Opened())
        if !isClosed { settleOpenings(nil) }
    }

    /// Keeps the argument of the `open` handler until the response has proved valid.
    /// - Parameter head: nil for a poll that the server holds without having sent a response.
    func noteOpening(_ head: ResponseHead?) {
        guard state != .open, handlers.open != nil else { return }
        opening = Shared(opened(head))
    }

    // MARK: Messages

    /// How many messages of a batch are checked or delivered in one turn of the loop. Of long
    /// messages fewer are delivered, because the handler may read all of their bytes.
    private static let messagesPerTurn = 1024

    func prepareDelivery() {
        guard let session else { return }
        var whole = ByteBuffer()
        swap(&whole, &body)
        deliveredCount = 0
        do throws(RealtimeError) {
            delivery = try LongPollDelivery(
                whole, contentType: session.contentType, id: session.messageID,
                before: session.lastEventID)
            deliver()
        } catch {
            reject(error)
        }
    }

    /// The response is malformed: the poll is repeated once.
    private func reject(_ error: RealtimeError) {
        let failure = session?.rejected(error, now: Loop.now(), random: randomFraction())
        if let failure { report(failure) }
        restartIfAsked()
    }

    /// Delivers messages, some in each turn, until the poll is closed or paused. Moves the cursor
    /// when all are delivered.
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
                deliveredCount += 1
                current?.deliverNext {
                    bytesLeft -= $0.data.count
                    deliver($0)
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
            // In the next turn, so that other objects get theirs in between.
            if mayDeliver { loop.enqueue { [self] in deliver() } }
            return
        }
        session?.delivered(isEmpty: deliveredCount == 0, now: Loop.now())
        if let id = session?.lastEventID { publish(id: id) }
        noteWait()
        if !isClosed { updateTimer() }
        restartIfAsked()
    }

    private func deliver(_ message: LongPollMessage) {
        if let handle = handlers.message {
            handle(message)
        } else if let inbox {
            keep(
                ReceivedMemory(
                    id: message.id, hadID: message.hadID, data: message.data,
                    contentType: message.contentType),
                in: inbox)
        }
    }

    /// Checks the next parts. Once the whole response has proved valid, the state becomes open.
    private func prepare(_ current: inout LongPollDelivery?) throws(RealtimeError) {
        guard deliveredCount == 0 else { return }
        try current?.check(parts: LongPollConnection.messagesPerTurn)
        if current?.isChecked == true { noteState(state) }
    }

    // MARK: The user

    func restartNow() {
        guard !isClosed, let state = session?.state, state != .closed else { return }
        // Messages that have arrived are delivered first; if dropped, they would be requested
        // again.
        restartsAfterDelivery = delivery != nil || isDelivering
        if restartsAfterDelivery { return }
        dropConnection()
        session?.restart(now: Loop.now())
        noteWait()
        if !isClosed { updateTimer() }
    }

    /// Makes up for a restart that was requested during a delivery.
    private func restartIfAsked() {
        if restartsAfterDelivery { restartNow() }
    }
}
