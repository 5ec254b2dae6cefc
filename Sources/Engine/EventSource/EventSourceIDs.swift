import Session
import Wire

// The last event id of an event source, and where it is kept (docs/eventsource.md, C14). The loop's
// owner only.
extension EventSourceConnection: EventIDSource {
    var idKey: String { idPlace.key }

    /// What cannot be used is told now, and not when the first id is written.
    /// - Returns: the id that is stored.
    func openStore(_ path: String) -> String? {
        let writer = EventIDWriter.shared(path, on: loop)
        self.writer = writer
        var id: String?
        do throws(RealtimeError) {
            id = try writer.store.load(idPlace.key)
            try writer.store.check()
        } catch {
            // A fresh start: the next id replaces a file that is damaged.
            tell(notice(error))
            // What is told here is not told again with the first id.
            unstored.isBroken = (try? writer.store.check()) == nil
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
        handlers.idChanged?()
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
        if let writer {
            let isFirst = unstored.id == nil
            unstored.id = id
            if isFirst { writer.add(self) }
        }
        if handlers.storeID != nil {
            unstored.untold = id
            updateTimer()
        }
    }

    /// After the callback of its event, at most once a second, and at the end (C14).
    func tellID() {
        guard let id = unstored.untold else { return }
        unstored.untold = nil
        unstored.due = Loop.now() + .seconds(1)
        if loop.mayCall { handlers.storeID?(idPlace.key, id) }
    }

    /// There is no later for its id.
    func finishIDs() {
        tellID()
        writer?.finish(self)
    }

    /// The id could not be written; told once, not each second.
    func idFailed(_ error: RealtimeError) {
        guard !isClosed else { return Log.write(.warning, error.message) }
        guard !unstored.isBroken else { return }
        unstored.isBroken = true
        tell(notice(error))
    }

    /// An error beside the connection, which goes on.
    private func notice(_ error: RealtimeError) -> HTTPSourceFailure {
        HTTPSourceFailure(error: error)
    }
}
