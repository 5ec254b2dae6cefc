import CShims
import Session
import Synchronization
import Wire

// What a long poll does on its loop's thread.
extension LongPollConnection {
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

    /// Storage of a body above this goes back to the system after each poll.
    static let keptStorage = 64 << 10

    func noteState(_ before: LongPollState?) {
        guard let state = session?.state, !isClosed else { return }
        setState(state)
        guard state == .open, before != .open else { return }
        log(.info, "\(configuration.url.displayName): the server answers polls")
        let opened = opening.take()
        handlers.open?(opened?.value ?? Opened())
    }

    /// Keeps what the open handler is told when the answer has proved good.
    /// - Parameter head: nil for a poll that is held without an answer.
    func noteOpening(_ head: ResponseHead?) {
        guard state != .open, handlers.open != nil else { return }
        opening = Shared(opened(head))
    }

    // MARK: Messages

    /// Messages of a batch that are checked, or delivered, in one turn of the loop; of long ones
    /// fewer are delivered, since who takes them may read all of their bytes.
    private static let messagesPerTurn = 1024

    func prepareDelivery() {
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
                    tell($0)
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
            if mayDeliver { loop.enqueue { [self] in deliver() } }
            return
        }
        session?.delivered(isEmpty: told == 0, now: Loop.now())
        if let id = session?.lastEventID { publish(id: id) }
        updateTimer()
        restartIfAsked()
    }

    private func tell(_ message: LongPollMessage) {
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

    /// Checks what has come. Once it is known to be whole, the server counts as open.
    private func prepare(_ current: inout LongPollDelivery?) throws(RealtimeError) {
        guard told == 0 else { return }
        try current?.check(parts: LongPollConnection.messagesPerTurn)
        if current?.isChecked == true { noteState(state) }
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
}
