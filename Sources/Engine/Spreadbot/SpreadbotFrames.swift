import Session
import Wire

// The frames of a WebSocket: finds out which of them the server has received, also during a pause
// (docs/spreadbot.md, B14).
extension SpreadbotConnection {
    func confirm(_ id: SpreadbotSend.ID) {
        guard let leg, let webSocket = leg.webSocket else { return }
        // No pong is read during a pause; then it must suffice that the frame is written.
        if isPaused {
            leg.owedPing = id
            return webSocket.connection.oweDrained()
        }
        webSocket.ping { [self] _ in
            guard leg === self.leg else { return }
            leg.pass(id)
            session.confirmed(leg.number, id, now: Loop.now())
            act()
        }
    }

    func pauseNow() {
        leg?.pause()
        leg?.webSocket?.connection.oweDrained()
    }

    func resumeNow() {
        guard let leg else { return }
        // In the next turn, because handlers run only in turns.
        if leg.batch.isEmpty { resume(leg) } else { continueBatch(leg) }
    }

    func resume(_ leg: SpreadbotLeg) {
        leg.resume()
        guard let id = leg.owedPing, !isPaused else { return }
        leg.owedPing = nil
        confirm(id)
    }

    /// Called when all frames are written.
    func drained(_ leg: SpreadbotLeg) {
        let id = leg.written
        guard leg === self.leg, isPaused, id > 0 else { return }
        leg.pass(id)
        session.written(leg.number, id)
        act()
    }
}
