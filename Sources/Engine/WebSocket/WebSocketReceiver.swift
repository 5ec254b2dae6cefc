package import CShims
package import Session
import Synchronization
package import Wire

// The byte path of a message: one read into the loop's buffer, the session's steps over it, then
// the handler with a pointer into it.
extension WebSocketConnection: WebSocketWalker {
    /// Reads until the socket is empty or this turn's share is used up. The share limits the bytes
    /// read, and also the bytes after inflating them.
    func receive() {
        if gate.isYielding { gate.endYield() }
        var share = loop.readShare
        session?.pointee.allow(inflating: share)
        while share > 0 {
            guard let transport = readable else { return }
            if !held.isEmpty || session?.pointee.hasPendingEnd == true {
                held.consume(take(held.readable))
                if !held.isEmpty { return }
                continue
            }
            if let count = receiveDirectly(transport, atMost: share) {
                if count == 0 { return }
                share -= count
                continue
            }
            let limit = min(share, session?.pointee.takeReadLimit() ?? .max)
            let buffer = UnsafeMutableRawBufferPointer(
                rebasing: pool.receiveBuffer().prefix(limit))
            switch transport.read(into: buffer) {
            case .bytes(let count, let isDrained):
                share -= count
                received(count)
                if life.stage == .open, session?.pointee.state == .finished,
                    let ending = life.ignored(count)
                {
                    return finish(ending)
                }
                let input = UnsafeRawBufferPointer(rebasing: buffer[..<count])
                let used = take(input)
                if used < count {
                    // Stopped by a pause or by the limit on inflated bytes. At most one read is
                    // held.
                    held.append(UnsafeRawBufferPointer(rebasing: input[used...]))
                    return
                }
                if isDrained { return loop.noteDrained() }
            case .wouldBlock: return loop.noteDrained()
            case .end: return ended(nil)
            case .failed(let why, let isTLS, let number): return ended(why, isTLS: isTLS, number)
            }
        }
        // epoll reports bytes left in the socket again, but not those in the TLS library.
        if let transport = readable, transport.isBuffered {
            wantsRead = true
            scheduleTurn()
        }
    }

    /// Bytes have arrived, but none can be read: they are a part of a TLS record.
    func receivedPartOfRecord() {
        guard let transport = readable, transport.isBuffered, life.stage == .open else { return }
        session?.pointee.received(unknownAt: Loop.now())
        handlers.activity?()
    }

    /// Reads the rest of a large frame directly into the message's storage.
    /// - Returns: how many bytes arrived, 0 if there are none for now, nil if there is no such
    ///   frame.
    private func receiveDirectly(_ transport: Transport, atMost share: Int) -> Int? {
        guard life.stage == .open, let space = session?.pointee.directSpace() else { return nil }
        switch transport.read(into: UnsafeMutableRawBufferPointer(rebasing: space.prefix(share))) {
        case .bytes(let count, let isDrained):
            received(count)
            let now = Loop.now()
            session?.pointee.received(messagesAt: now)
            if let step = session?.pointee.direct(count, now: now) { took(step) }
            if isDrained { loop.noteDrained() }
            return isDrained ? 0 : count
        case .wouldBlock:
            loop.noteDrained()
            return 0
        case .end: ended(nil)
        case .failed(let why, let isTLS, let number): ended(why, isTLS: isTLS, number)
        }
        return 0
    }

    /// Handles a step from outside `walk`.
    private func took(_ step: WebSocketSession.Step) {
        switch step {
        case .assembledMessage(let kind, let range):
            deliverOne(kind, range, to: taker)
            session?.pointee.exchangeStorage(&pool.spareAssembly)
        case .failed, .deliverFirst: handle(step)
        case .needMoreBytes, .message, .piece, .nothing, .pong, .closed, .allowanceSpent: break
        }
    }

    /// The transport, unless receiving is paused or has ended.
    private var readable: Transport? {
        guard case .connected(let transport) = link else { return nil }
        return life.stage == .open && mustWait ? nil : transport
    }

    /// Whether delivery is paused, or waits for the next turn.
    private var mustWait: Bool { isPaused || gate.isYielding && !gate.isEnding }

    /// Lets the messages that follow wait for the next turn: the handler of this one took as much
    /// time as it may. On the loop's thread, in the handler.
    func yield() {
        gate.yield()
        wantsRead = true
        scheduleTurn()
    }

    /// Handles bytes that were read. Returns how many were used: not all if a handler paused.
    private func take(_ input: UnsafeRawBufferPointer) -> Int {
        switch life.stage {
        case .handshaking, .refused:
            let used = takeHandshake(input)
            return used < input.count ? deliver(input, from: used) : used
        case .idle, .connecting, .authorizing, .open, .waiting, .over, .ended:
            return deliver(input, from: 0)
        }
    }

    /// Walks the session over `input`. The loop lends the storage for messages that must be
    /// assembled.
    /// - Returns: how many bytes were used.
    private func deliver(_ input: UnsafeRawBufferPointer, from start: Int) -> Int {
        session?.pointee.exchangeStorage(&pool.spareAssembly)
        defer { session?.pointee.exchangeStorage(&pool.spareAssembly) }
        return walk(over: input, from: start, now: Loop.now(), pool.wholeMessages())
    }

    /// The current receiver of messages: the user's handler, or threads that wait for them.
    package var taker: WebSocketHandlers.Delivery {
        let delivery = handlers.delivery
        guard case .nobody = delivery, let inbox else { return delivery }
        return .asMany { [self] base, messages, mustTakeAll in
            let count = mustTakeAll ? messages.count : min(messages.count, max(inbox.room, 1))
            let taken = messages[..<count].map {
                ReceivedMemory($0.messageKind, $0.bytes(at: base))
            }
            keep(taken, in: inbox, pauses: count < messages.count)
            return count
        }
    }

    /// Delivers messages that lie in `input`.
    /// - Returns: how many bytes were used, if a pause or changed handlers stopped delivery; else
    ///   nil.
    @inline(__always)
    package func deliverWhole(
        _ messages: UnsafeBufferPointer<rt_message>, of input: UnsafeRawBufferPointer,
        from start: Int, to delivery: WebSocketHandlers.Delivery
    ) -> Int? {
        guard let base = input.baseAddress else { return nil }
        switch delivery {
        case .nobody: return nil
        case .each(let handle):
            return each(of: messages, from: start) { handle($0.messageKind, $0.bytes(at: base)) }
        case .together(let handle):
            switch verdict {
            case .deliver: handle(base, messages)
            case .wait:
                session?.pointee.giveBack(messages)
                return start
            case .drop: break
            }
            return nil
        case .asMany(let take):
            switch verdict {
            case .deliver:
                let count = take(base, messages, false)
                guard count < messages.count else { return nil }
                session?.pointee.giveBack(UnsafeBufferPointer(rebasing: messages[count...]))
                pool.stopped(after: count)
                return count > 0 ? messages[count - 1].end : start
            case .wait:
                session?.pointee.giveBack(messages)
                return start
            case .drop: return nil
            }
        case .inPieces(let handle):
            return each(of: messages, from: start) {
                handle($0.messageKind, $0.bytes(at: base), true, true)
            }
        }
    }

    /// Delivers messages one by one.
    /// - Returns: how many bytes were used, if a pause or changed handlers stopped delivery; else
    ///   nil.
    @inline(__always)
    private func each(
        of messages: UnsafeBufferPointer<rt_message>, from start: Int,
        _ handle: (rt_message) -> Void
    ) -> Int? {
        var used = start
        for index in messages.indices {
            let message = messages[index]
            switch verdict {
            case .deliver: handle(message)
            case .wait:
                session?.pointee.giveBack(UnsafeBufferPointer(rebasing: messages[index...]))
                pool.stopped(after: index)
                return used
            case .drop: return nil
            }
            used = message.end
        }
        return nil
    }

    /// Delivers a piece of a message; also during a pause, because the piece is discarded next.
    package func deliverPiece(
        _ kind: MessageKind, _ range: Range<Int>, _ isFirst: Bool, _ isLast: Bool
    ) {
        let base = session?.pointee.assembled.baseAddress ?? .ofNothing
        if verdict != .drop, case .inPieces(let handle) = handlers.delivery {
            let bytes = UnsafeRawBufferPointer(
                start: base + range.lowerBound, count: range.count)
            handle(kind, bytes, isFirst, isLast)
        }
        session?.pointee.discardDelivered()
    }

    /// What to do with a message now.
    @inline(__always)
    private var verdict: DeliveryGate.Verdict {
        let verdict = gate.verdict
        return verdict == .deliver && loop.isClosed.load(ordering: .acquiring) ? .drop : verdict
    }

    package var isOpen: Bool { @inline(__always) get { gate.isOpen } }

    /// Returns how many bytes count as used if the walk must stop: all of them after the end,
    /// `offset` in a pause. nil to continue.
    package func stops(
        _ input: UnsafeRawBufferPointer, _ offset: Int, _ taker: inout WebSocketHandlers.Delivery
    ) -> Int? {
        if gate.wasRenewed() { taker = self.taker }
        if gate.isClosed { return input.count }
        return mustWait ? offset : nil
    }

    /// Adds the message to the batch while all assembled messages fit one read; else delivers it
    /// now.
    @inline(__always)
    package func take(
        assembled kind: MessageKind, _ range: Range<Int>, for taker: WebSocketHandlers.Delivery
    ) {
        if case .together = taker, range.upperBound < WebSocketPool.receiveBytes {
            pool.batch.append(rt_message(kind, range))
        } else {
            deliverOne(kind, range, to: taker)
        }
    }

    /// The next turn continues, after the loop's other work.
    package func allowanceSpent() {
        wantsRead = true
        scheduleTurn()
    }

    @inline(__always)
    package func found(_ step: WebSocketSession.Step, using bytes: Int) {}

    /// Delivers one assembled message, after those in the batch. Also during a pause, because its
    /// storage is reused.
    @inline(__always)
    private func deliverOne(
        _ kind: MessageKind, _ range: Range<Int>, to delivery: WebSocketHandlers.Delivery
    ) {
        if case .together = delivery {
            pool.batch.append(rt_message(kind, range))
            return deliverAssembled()
        }
        let base = session?.pointee.assembled.baseAddress ?? .ofNothing
        if verdict != .drop {
            let bytes = UnsafeRawBufferPointer(start: base + range.lowerBound, count: range.count)
            switch delivery {
            case .nobody, .together: break
            case .each(let handle): handle(kind, bytes)
            case .asMany(let take):
                withUnsafePointer(to: rt_message(kind, range)) {
                    _ = take(base, UnsafeBufferPointer(start: $0, count: 1), true)
                }
            case .inPieces(let handle): handle(kind, bytes, true, true)
            }
        }
        session?.pointee.discardDelivered()
    }

    /// Delivers the assembled messages in the batch; also during a pause.
    package func deliverAssembled() {
        guard !pool.batch.isEmpty else { return }
        // If all messages are empty, there is no buffer.
        let base = session?.pointee.assembled.baseAddress ?? .ofNothing
        if verdict != .drop, case .together(let handle) = handlers.delivery {
            pool.batch.withUnsafeBufferPointer { handle(base, $0) }
        }
        pool.batch.removeAll(keepingCapacity: true)
        session?.pointee.discardDelivered()
    }

    package func handle(_ step: WebSocketSession.Step) {
        switch step {
        case .pong(let time, let number): answered(number, time)
        case .closed(let code, let reason):
            Log.write(.debug, "\(currentURL.displayName) sent a close frame with \(code)")
            setState(.closing)
            life.closed(by: code, reason.isEmpty ? "" : sentSecrets.redacted(reason))
        case .failed(let failure):
            setState(.closing)
            report(life.violated(failure, configuration))
        case .needMoreBytes, .message, .assembledMessage, .piece, .nothing, .deliverFirst,
            .allowanceSpent:
            break
        }
    }

    private func answered(_ number: UInt64, _ time: Duration) {
        let (seconds, attoseconds) = time.components
        roundTrip.store(seconds * 1_000_000 + attoseconds / 1_000_000_000_000, ordering: .relaxed)
        Log.write(.debug, "\(currentURL.displayName): a pong after \(time)")
        guard isWanted else { return }
        handlers.pong?(time)
        guard let first = awaitedPongs.first, first.number <= number else { return }
        let now = Loop.now()
        let answeredPings = awaitedPongs.prefix { $0.number <= number }
        awaitedPongs.removeFirst(answeredPings.count)
        for pong in answeredPings { pong.answered(now - pong.sentAt) }
    }

    /// The peer ended the stream, or reading failed.
    private func ended(_ why: String?, isTLS: Bool = false, _ systemError: Int32 = 0) {
        let isOpen = session?.pointee.state == .open
        let loss = life.lost(
            why, isTLS: isTLS, systemError: systemError, isOpen: isOpen, configuration)
        switch loss {
        case .nothing: break
        case .failed(let error): fail(error)
        case .ended(let ending): finish(ending)
        }
    }
}

extension rt_message {
    package var messageKind: MessageKind {
        kind == MessageKind.text.rawValue ? .text : .binary
    }

    fileprivate var end: Int { Int(offset &+ length) }

    package func bytes(at base: UnsafeRawPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: base + Int(offset), count: Int(length))
    }
}
