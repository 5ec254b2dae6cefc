import Session
import Wire

// The frames of a WebSocket: how a connection knows that the server has them, in a pause too
// (sse-poll-rest.md, B14).
extension SpreadbotConnection {
    func confirm(_ id: SpreadbotSend.ID) {
        guard let leg, case .webSocket(let connection) = leg.kind else { return }
        // No pong is read: what is written must do then.
        if leg.isPaused {
            leg.owedPing = id
            return connection.oweDrained()
        }
        // One that is closing answers no more, and its end says what arrived.
        try? connection.ping(UnsafeRawBufferPointer(start: nil, count: 0)) { [self] _ in
            guard leg === self.leg else { return }
            leg.pass(id)
            session.confirmed(leg.number, id, now: Loop.now())
            act()
            read(leg)
        }
    }

    /// Has a leg read, or not: in a pause a WebSocket is read on for the answer to a ping, and what
    /// comes before it is held, up to a limit.
    func read(_ leg: SpreadbotLeg) {
        guard leg === self.leg else { return }
        guard case .webSocket(let connection) = leg.kind else {
            return isPaused ? leg.pause() : leg.resume()
        }
        if !isPaused || session.awaitsConfirmation && !leg.isFull {
            leg.resume()
        } else {
            leg.pause()
            connection.oweDrained()
        }
    }

    func pauseNow() {
        session.setPaused(isPaused, now: Loop.now())
        schedule()
        if let leg { read(leg) }
    }

    func resumeNow() {
        session.setPaused(isPaused, now: Loop.now())
        schedule()
        guard let leg else { return }
        guard leg.held.isEmpty else {
            // In the next turn, as handlers are called by turns alone; the leg goes on behind it.
            return loop.enqueue { [self] in
                deliverHeld(leg)
                if leg === self.leg, !isPaused { resume(leg) }
            }
        }
        resume(leg)
    }

    private func resume(_ leg: SpreadbotLeg) {
        read(leg)
        guard let id = leg.owedPing, !isPaused else { return }
        leg.owedPing = nil
        confirm(id)
    }

    /// All frames are written.
    func drained(_ leg: SpreadbotLeg) {
        let id = leg.written
        guard leg === self.leg, leg.isPaused, id > 0 else { return }
        leg.pass(id)
        session.written(leg.number, id)
        act()
    }
}
