import Session
import Wire

// The last event id of an event source, and where it is kept (sse-poll-rest.md, C14). The loop's
// owner only.
extension EventSourceConnection {
    /// What cannot be used is told now, and not when the first id is written.
    /// - Returns: the id that is stored.
    func openStore(_ path: String) -> String? {
        let store = EventIDStore(path: path)
        self.store = store
        var id: String?
        do throws(RealtimeError) {
            id = try store.load(idPlace.key)
            try store.check()
        } catch {
            // A fresh start: the next id replaces a file that is damaged.
            tell(notice(error))
            // What is told here is not told again with the first id.
            unstored.isBroken = (try? store.check()) == nil
        }
        return id
    }

    /// Takes notice of the last id, behind the handlers of its event: at the end of each read, and
    /// when they ask or close.
    func noteID() {
        guard parser.pointee.idCount != knownIDs else { return }
        knownIDs = parser.pointee.idCount
        let id = String(decoding: parser.pointee.lastEventID, as: UTF8.self)
        if session?.lastEventID.utf8.elementsEqual(id.utf8) ?? true { return }
        session?.lastEventID = id
        publish { $0.lastEventID = id }
        if !confirmsIDs { keepID(id) }
    }

    /// Inside its handlers the id of their event goes too.
    func forgetID() {
        // What was written at its end is gone, and may be another's by now.
        guard session?.state != .closed || unstored.id != nil else { return }
        if isReading { noteID() }
        keepID("")
    }

    /// An id may be written from now on.
    func keepID(_ id: String) {
        guard store != nil || handlers.storeID != nil else { return }
        unstored.id = id
        unstored.isTold = false
        updateTimer()
    }

    /// After the callback of its event, at most once a second, and at the end (C14).
    func writeID(isLast: Bool = false) {
        guard let id = unstored.id else { return }
        let key = idPlace.key
        unstored.id = nil
        unstored.due = Loop.now() + .seconds(1)
        if !unstored.isTold, loop.mayCall { handlers.storeID?(key, id) }
        do throws(RealtimeError) {
            try store?.save(id, key, isLast: isLast)
            unstored.isBroken = false
        } catch {
            Log.write(.warning, error.message)
            // Tried again in a second, unless there is another by then: it may have been busy.
            if unstored.id == nil, !isLast { (unstored.id, unstored.isTold) = (id, true) }
            // Told once, not each second.
            if !unstored.isBroken, !isClosed { tell(notice(error)) }
            unstored.isBroken = true
        }
    }

    /// An error beside the connection, which goes on.
    private func notice(_ error: RealtimeError) -> HTTPSourceFailure {
        HTTPSourceFailure(error: error)
    }
}
