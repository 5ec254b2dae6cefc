import CShims
import Session
import Wire

// The path of received bytes through the session.
extension Client: WebSocketWalker {
    func receive() {
        var share = plan.bytesPerTurn
        session?.pointee.allow(inflating: plan.bytesPerTurn)
        while share > 0 {
            guard isReading else { return }
            if !held.isEmpty || session?.pointee.hasPendingEnd == true {
                held.consume(take(held.readable))
                if !held.isEmpty { return }
                continue
            }
            if let count = receiveDirectly() {
                if count == 0 { return }
                share -= count
                continue
            }
            let limit = session?.pointee.takeReadLimit() ?? .max
            let buffer = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(limit))
            switch endpoint.read(into: buffer) {
            case .bytes(let count):
                share -= count
                session?.pointee.receivedBytes()
                if life.stage == .open, session?.pointee.state == .finished,
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
                // Overwrite it: nothing may refer to bytes of an earlier read.
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
        case .idle, .connecting, .authorizing, .waiting, .over, .ended: false
        }
    }

    /// Reads the rest of a large frame directly into its storage.
    private func receiveDirectly() -> Int? {
        guard life.stage == .open, let session, let space = session.pointee.directSpace() else {
            return nil
        }
        switch endpoint.read(into: space) {
        case .bytes(let count):
            world.count("read directly")
            session.pointee.receivedBytes()
            guardian.read(UnsafeRawBufferPointer(rebasing: space[..<count]))
            session.pointee.received(messagesAt: world.now)
            guardian.usedDirectly(count)
            took(session.pointee.direct(count, now: world.now))
            return count < space.count ? 0 : count
        case .wouldBlock: return 0
        case .end, .reset: ended()
        }
        return 0
    }

    /// Handles the result of a step outside the walk over a read.
    private func took(_ step: WebSocketSession.Step) {
        guardian.step(session?.pointee.assembled.count ?? 0)
        switch step {
        case .assembledMessage(let kind, let range):
            batch.append(rt_message(kind, range))
            deliverAssembled()
            session?.pointee.exchangeStorage(&spareAssembly)
        case .failed, .deliverFirst: handle(step)
        case .needMoreBytes, .message, .piece, .nothing, .pong, .closed, .allowanceSpent: break
        }
    }

    private func take(_ input: UnsafeRawBufferPointer) -> Int {
        switch life.stage {
        case .handshaking, .refused: break
        case .idle, .connecting, .authorizing, .open, .waiting, .over, .ended:
            return deliver(input, from: 0)
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

    /// Runs the session over `input`, with the loop's storage for assembled messages.
    private func deliver(_ input: UnsafeRawBufferPointer, from start: Int) -> Int {
        session?.pointee.exchangeStorage(&spareAssembly)
        defer { session?.pointee.exchangeStorage(&spareAssembly) }
        idleSteps = 0
        let used = walk(over: input, from: start, now: world.now, whole)
        guardian.used(UnsafeRawBufferPointer(rebasing: input[min(start, used)..<used]))
        return used
    }

    /// One user receives everything.
    var taker: Void { () }

    var isOpen: Bool { !waits && world.violation == nil }

    func stops(_ input: UnsafeRawBufferPointer, _ offset: Int, _ taker: inout Void) -> Int? {
        world.violation == nil ? offset : input.count
    }

    func found(_ step: WebSocketSession.Step, using bytes: Int) {
        guardian.step(session?.pointee.assembled.count ?? 0)
        idleSteps = bytes == 0 ? idleSteps + 1 : 0
        world.require(idleSteps < 4, "\(step) again and again, without using a byte")
        if case .deliverFirst = step { world.count("deliver first") }
    }

    func take(assembled kind: MessageKind, _ range: Range<Int>, for taker: Void) {
        guardian.messagesCame()
        batch.append(rt_message(kind, range))
        if !plan.usesBatches || range.upperBound >= plan.receiveBytes { deliverAssembled() }
    }

    func allowanceSpent() {
        world.count("inflated a turn's share")
        wantsRead = true
        scheduleTurn()
    }

    private enum Verdict {
        case deliver, wait, drop
    }

    private var verdict: Verdict { isClosing ? .drop : isPaused ? .wait : .deliver }

    func deliverWhole(
        _ messages: UnsafeBufferPointer<rt_message>, of input: UnsafeRawBufferPointer,
        from start: Int, to taker: Void
    ) -> Int? {
        guardian.messagesCame()
        guard let base = input.baseAddress else { return nil }
        if plan.usesBatches {
            switch verdict {
            case .deliver: tell(messages, at: base)
            case .wait:
                session?.pointee.giveBack(messages)
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
                session?.pointee.giveBack(UnsafeBufferPointer(rebasing: messages[index...]))
                return used
            case .drop: return nil
            }
            used = Int(messages[index].offset &+ messages[index].length)
        }
        return nil
    }

    func deliverPiece(
        _ kind: MessageKind, _ range: Range<Int>, _ isFirst: Bool, _ isLast: Bool
    ) {
        guardian.messagesCame()
        world.require(
            plan.configuration.deliversPieces, "a piece although whole messages are wanted")
        if verdict != .drop, let assembled = session?.pointee.assembled {
            user.piece(kind, Array(assembled[range]), isFirst: isFirst, isLast: isLast)
        }
        session?.pointee.discardDelivered()
    }

    func deliverAssembled() {
        guard !batch.isEmpty else { return }
        let empty = UnsafeRawPointer(bitPattern: 16).unsafelyUnwrapped
        let base = session?.pointee.assembled.baseAddress ?? empty
        if verdict != .drop {
            batch.withUnsafeBufferPointer { tell($0, at: base) }
        }
        batch.removeAll(keepingCapacity: true)
        session?.pointee.discardDelivered()
    }

    /// A batch is one callback: the user's actions in it apply to later ones.
    private func tell(_ messages: UnsafeBufferPointer<rt_message>, at base: UnsafeRawPointer) {
        user.batch(
            messages.map {
                let kind: MessageKind = $0.kind == MessageKind.text.rawValue ? .text : .binary
                let start = base + Int($0.offset)
                return (kind, UnsafeRawBufferPointer(start: start, count: Int($0.length)))
            })
    }

    func handle(_ step: WebSocketSession.Step) {
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
        let isOpen = session?.pointee.state == .open
        switch life.lost(nil, isOpen: isOpen, plan.configuration) {
        case .nothing: break
        case .failed(let error): fail(error)
        case .ended(let ending): finish(ending)
        }
    }
}
