import Session
import Wire

// The messages of the server, and flushes that take several turns.
extension DDPRun {
    /// Continues a flush in a later turn, as long as it is in progress.
    func continueLater() {
        guard session.isFlushing || !unread.isEmpty, !willContinue else { return }
        willContinue = true
        world.count("flushed in parts")
        world.after(.milliseconds(parts.pick([0, 0, 1, 3]))) { [self] in
            willContinue = false
            setClock()
            isReceiving = true
            if session.isFlushing { session.continueFlush(world.now) }
            act()
            isReceiving = false
            while !session.isFlushing, !unread.isEmpty, world.violation == nil {
                unread.removeFirst()()
            }
            continueLater()
        }
    }

    /// Reads what the server has sent, unless that has to wait.
    func read(_ body: @escaping () -> Void) {
        guard session.isFlushing || !unread.isEmpty else { return body() }
        unread.append(body)
        continueLater()
    }

    func receive(_ text: String, _ link: DDPLink) {
        guard !link.isDropped, world.violation == nil else { return }
        world.trace("server", text)
        let json = try? JSONValue(parsing: text)
        let kind = json?["msg"]?.stringValue ?? ""
        reading.heard()
        if let json { read(kind, json, link) }
        let isFirst = kind == "connected" && !link.isConfirmed
        if isFirst, let id = json?["session"]?.stringValue {
            if id != documents.sessionID { accounts.sessionIsNew() }
            let sent = Set(calls.inFlight.union(calls.expired).map { "\($0)" })
            documents.connected(id, ready: subscriptions.ready, calls: sent)
        }
        isReceiving = true
        setClock()
        defer { isReceiving = false }
        Array(text.utf8).withUnsafeBytes { bytes in
            let frame = reader.read(bytes)
            session.received(frame, bytes: bytes.count, on: link.number, now: world.now)
        }
        act()
    }

    private func read(_ kind: String, _ json: JSONValue, _ link: DDPLink) {
        let id = json["id"]?.stringValue
        switch kind {
        case "ping": owed.append(id)
        case "failed": link.isRefusal = true
        case "ready":
            subscriptions.receivedReady((json["subs"]?.arrayValue ?? []).compactMap(\.stringValue))
        case "nosub": subscriptions.receivedEnd(id ?? "")
        default: break
        }
        documents.received(kind, json)
    }
}
