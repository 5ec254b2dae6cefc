import CShims
import Session
import Wire

// The byte path: what the session finds in what was read.
extension Client {
    func receive() {
        var share = plan.bytesPerTurn
        session?.value.allow(inflating: plan.bytesPerTurn)
        while share > 0 {
            guard isReading else { return }
            if !held.isEmpty || session?.value.hasPendingEnd == true {
                held.consume(take(held.readable))
                if !held.isEmpty { return }
                continue
            }
            if let count = receiveDirectly() {
                if count == 0 { return }
                share -= count
                continue
            }
            let limit = session?.value.takeReadLimit() ?? .max
            let buffer = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(limit))
            switch endpoint.read(into: buffer) {
            case .bytes(let count):
                share -= count
                if life.stage == .open, session?.value.state == .finished,
                    let ending = life.ignored(count)
                {
                    return finish(ending)
                }
                let input = UnsafeRawBufferPointer(rebasing: buffer[..<count])
                guardian.read(input)
                let used = take(input)
                if used < count {
                    held.append(UnsafeRawBufferPointer(rebasing: input[used...]))
                }
                // Nothing may refer to what was read before.
                buffer.initializeMemory(as: UInt8.self, repeating: 0xDD)
                if used < count || count < buffer.count { return }
            case .wouldBlock: return
            case .end: return ended()
            case .reset: return ended()
            }
        }
    }

    private var isReading: Bool {
        switch life.stage {
        case .handshaking, .refused: true
        case .open: !waits
        case .idle, .connecting, .waiting, .over, .ended: false
        }
    }

    /// Reads the rest of a large frame into its place.
    private func receiveDirectly() -> Int? {
        guard life.stage == .open, let session, let space = session.value.directSpace() else {
            return nil
        }
        switch endpoint.read(into: space) {
        case .bytes(let count):
            world.count("read directly")
            guardian.read(UnsafeRawBufferPointer(rebasing: space[..<count]))
            messagesCame()
            took(session.value.direct(count, now: world.now))
            return count < space.count ? 0 : count
        case .wouldBlock: return 0
        case .end, .reset: ended()
        }
        return 0
    }

    /// What a step beside the walk over a read found.
    private func took(_ step: WebSocketSession.Step) {
        guardian.step(session?.value.assembled.count ?? 0)
        switch step {
        case .assembledMessage(let kind, let range):
            batch.append(rt_message(kind, range))
            deliverAssembled()
            session?.value.exchangeStorage(&spareAssembly)
        case .failed, .deliverFirst: handle(step)
        case .needMoreBytes, .message, .piece, .nothing, .pong, .closed, .allowanceSpent: break
        }
    }

    private func take(_ input: UnsafeRawBufferPointer) -> Int {
        switch life.stage {
        case .handshaking, .refused: break
        case .idle, .connecting, .open, .waiting, .over, .ended: return deliver(input, from: 0)
        }
        switch life.received(input, plan.configuration, now: world.now) {
        case .incomplete: break
        case .open(let outcome, _, let used):
            guardian.headEnded(behind: input.count - used)
            opened(outcome)
            return deliver(input, from: used)
        case .redirected: world.fail("follows a redirect to nowhere")
        case .failed(let error): fail(error)
        }
        return input.count
    }

    /// Walks the session over `input`, with storage of the loop's for what must be assembled.
    private func deliver(_ input: UnsafeRawBufferPointer, from start: Int) -> Int {
        session?.value.exchangeStorage(&spareAssembly)
        defer { session?.value.exchangeStorage(&spareAssembly) }
        return walkSession(over: input, from: start)
    }

    private func walkSession(over input: UnsafeRawBufferPointer, from start: Int) -> Int {
        var offset = start
        var idleSteps = 0
        while world.violation == nil {
            if let used = stops(input, offset) {
                deliverAssembled()
                return used
            }
            guard let session else { return input.count }
            let first = offset
            let count = session.value.wholeMessages(input, &offset, into: whole)
            if count > 0 {
                messagesCame()
                deliverAssembled()
                let messages = UnsafeBufferPointer(rebasing: whole[..<count])
                if let used = deliverWhole(messages, of: input, from: first) { return used }
                continue
            }
            let step = session.value.next(input, &offset, now: world.now)
            guardian.step(session.value.assembled.count)
            idleSteps = offset == first ? idleSteps + 1 : 0
            world.require(idleSteps < 4, "\(step) again and again, without using a byte")
            switch step {
            case .message(let kind, let range):
                messagesCame()
                whole[0] = rt_message(kind, range)
                let message = UnsafeBufferPointer(rebasing: whole[..<1])
                if let used = deliverWhole(message, of: input, from: first) { return used }
            case .assembledMessage(let kind, let range):
                messagesCame()
                batch.append(rt_message(kind, range))
                if !plan.usesBatches || range.upperBound >= plan.receiveBytes {
                    deliverAssembled()
                }
            case .piece(let kind, let range, let isFirst, let isLast):
                messagesCame()
                deliverPiece(kind, range, isFirst, isLast)
            case .needMoreBytes:
                deliverAssembled()
                return input.count
            case .allowanceSpent:
                world.count("inflated a turn's share")
                deliverAssembled()
                wantsRead = true
                scheduleTurn()
                return offset
            case .nothing: break
            case .deliverFirst:
                world.count("deliver first")
                deliverAssembled()
            case .pong, .closed, .failed:
                deliverAssembled()
                handle(step)
            }
        }
        return input.count
    }

    private func messagesCame() {
        session?.value.received(messagesAt: world.now)
        guardian.messagesCame()
    }

    private enum Verdict {
        case deliver, wait, drop
    }

    private var verdict: Verdict { isClosing ? .drop : isPaused ? .wait : .deliver }

    private func stops(_ input: UnsafeRawBufferPointer, _ offset: Int) -> Int? {
        waits ? offset : nil
    }

    private func deliverWhole(
        _ messages: UnsafeBufferPointer<rt_message>, of input: UnsafeRawBufferPointer,
        from start: Int
    ) -> Int? {
        guard let base = input.baseAddress else { return nil }
        if plan.usesBatches {
            switch verdict {
            case .deliver: tell(messages, at: base)
            case .wait:
                session?.value.giveBack(messages)
                return start
            case .drop: break
            }
            return nil
        }
        var used = start
        for index in messages.indices {
            switch verdict {
            case .deliver: tell(UnsafeBufferPointer(rebasing: messages[index...index]), at: base)
            case .wait:
                session?.value.giveBack(UnsafeBufferPointer(rebasing: messages[index...]))
                return used
            case .drop: return nil
            }
            used = Int(messages[index].offset &+ messages[index].length)
        }
        return nil
    }

    private func deliverPiece(
        _ kind: MessageKind, _ range: Range<Int>, _ isFirst: Bool, _ isLast: Bool
    ) {
        world.require(plan.configuration.deliversPieces, "a piece, where messages are wanted")
        if verdict != .drop, let assembled = session?.value.assembled {
            user.piece(kind, Array(assembled[range]), isFirst: isFirst, isLast: isLast)
        }
        session?.value.discardDelivered()
    }

    private func deliverAssembled() {
        guard !batch.isEmpty else { return }
        let empty = UnsafeRawPointer(bitPattern: 16).unsafelyUnwrapped
        let base = session?.value.assembled.baseAddress ?? empty
        if verdict != .drop {
            batch.withUnsafeBufferPointer { tell($0, at: base) }
        }
        batch.removeAll(keepingCapacity: true)
        session?.value.discardDelivered()
    }

    /// A batch is one callback: what the user does in it counts for later ones.
    private func tell(_ messages: UnsafeBufferPointer<rt_message>, at base: UnsafeRawPointer) {
        user.batch(
            messages.map {
                let kind: MessageKind = $0.kind == MessageKind.text.rawValue ? .text : .binary
                let start = base + Int($0.offset)
                return (kind, UnsafeRawBufferPointer(start: start, count: Int($0.length)))
            })
    }

    private func handle(_ step: WebSocketSession.Step) {
        switch step {
        case .pong(let time, _):
            guardian.ponged()
            if !isClosing { user.pong(time) }
        case .closed(let code, let reason):
            guardian.finished(failed: false)
            life.closed(by: code, reason)
        case .failed(let failure):
            guardian.finished(failed: true)
            world.trace("client", "finds: \(failure.message)")
            report(life.violated(failure, plan.configuration))
        case .needMoreBytes, .message, .assembledMessage, .piece, .nothing, .deliverFirst,
            .allowanceSpent:
            break
        }
    }

    /// The peer ended the stream.
    private func ended() {
        let isOpen = session?.value.state == .open
        switch life.lost(nil, isOpen: isOpen, plan.configuration) {
        case .nothing: break
        case .failed(let error): fail(error)
        case .ended(let ending): finish(ending)
        }
    }
}

extension rt_message {
    fileprivate init(_ kind: MessageKind, _ range: Range<Int>) {
        self.init(
            offset: UInt64(range.lowerBound), length: UInt64(range.count), kind: kind.rawValue,
            reserved: 0)
    }
}
