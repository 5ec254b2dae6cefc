import Session
package import Wire

// The last event id of an event source, and where it is stored (docs/eventsource.md, C14). The
// loop's owner only.
extension EventSourceConnection: EventIDSource {
    var idKey: String { idLocation.key }

    /// Reports a store that cannot be used now, rather than when the first id is written.
    /// - Returns: the stored id.
    func openStore(_ path: String) -> String? {
        let writer = EventIDWriter.shared(path, on: loop)
        self.writer = writer
        var id: String?
        do throws(RealtimeError) {
            id = try writer.store.load(idLocation.key)
            try writer.store.check()
        } catch {
            // Start without an id. If the file is damaged, the next id replaces it.
            report(notice(error))
            // Reported here, so not again with the first id.
            unstored.isBroken = (try? writer.store.check()) == nil
        }
        return id
    }

    /// Checks whether ids can be kept in a file, as far as that is known in advance. A damaged file
    /// passes, because the first id replaces it.
    /// - Throws: `.store` if not.
    package static func checkIDFile(_ path: String) throws(RealtimeError) {
        try KeyedStore(path: path, format: .eventIDs).check()
    }

    /// Takes over the last id after the handlers of its event have run: at once if ids are stored,
    /// otherwise at the end of each read, and when a handler asks for it or closes.
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

    /// Call after the handlers of an event.
    func noteIDOfEvent() {
        guard storesIDs else { return }
        if !confirmsIDs { noteID() } else if !isClosed { onDelivered?() }
    }

    /// Inside the handlers of an event, that event's id is removed as well.
    func forgetID() {
        // After the end the id is out of our hands: another source may have stored one under the
        // key.
        guard session?.state != .closed || unstored.id != nil else { return }
        if isReading { noteID() }
        var isReset = false
        publish { isReset = $0.isReset }
        // An id that the caller has confirmed since is stored as usual.
        if isReset { keepID("") }
    }

    /// Queues an id to be written.
    func keepID(_ id: String) {
        if let writer {
            let isFirst = unstored.id == nil
            unstored.id = id
            publish { $0.unwrittenID = id }
            if isFirst { writer.add(self) }
        }
        if handlers.storeID != nil {
            unstored.unreported = id
            updateTimer()
        }
    }

    /// Queues the id that the caller has confirmed last.
    func takeConfirmedID() {
        var id: String?
        publish { shared in
            shared.isConfirming = false
            id = shared.unwrittenID
            if writer == nil { shared.unwrittenID = nil }
        }
        if let id { keepID(id) }
    }

    /// The id to write: perhaps one that the caller has confirmed meanwhile.
    var idToWrite: String {
        var id: String?
        publish { id = $0.unwrittenID }
        return id ?? unstored.id ?? ""
    }

    /// - Parameter id: nil if it could not be written, and nobody tries again.
    func wrote(_ id: String?) {
        unstored.id = nil
        publish { shared in
            let isSame = id.map { shared.unwrittenID?.utf8.elementsEqual($0.utf8) ?? true }
            if isSame ?? true { shared.unwrittenID = nil }
            shared.lostID = nil
        }
    }

    func lost(because error: RealtimeError) { publish { $0.lostID = error } }

    /// Writes an id that the loop has not written yet, or has yet to try again. Any thread.
    /// - Throws: `.store` if it cannot be written.
    func writeUnwrittenID() throws(RealtimeError) {
        var location: IDLocation?
        publish { location = $0.unwrittenID == nil ? nil : $0.idLocation }
        guard let location, let path = location.path else { return }
        var timeout = EventIDWriter.longLockTimeout
        let store = KeyedStore(path: path, format: .eventIDs)
        var id: String?
        let refused = try store.save(&timeout) {
            // The loop may have written a later one meanwhile.
            publish { id = $0.unwrittenID }
            return id.map { [(location.key, $0)] } ?? []
        }
        if !refused.isEmpty { throw store.isFull }
        if id != nil { publish { $0.lostID = nil } }
    }

    /// Like `writeUnwrittenID`, but also throws if an earlier attempt was the last one. Any thread.
    package func writeLastID() throws(RealtimeError) {
        try writeUnwrittenID()
        var lost: RealtimeError?
        publish { lost = $0.lostID }
        if let lost { throw lost }
    }

    /// Passes the id to the handler: after the event's callback, at most once a second, and at the
    /// end (C14).
    func reportID() {
        guard let id = unstored.unreported else { return }
        unstored.unreported = nil
        unstored.due = Loop.now() + .seconds(1)
        if loop.mayCall { handlers.storeID?(idLocation.key, id) }
    }

    /// The source ends: reports and writes its last id.
    func finishIDs() {
        reportID()
        writer?.finish(self)
    }

    /// The id could not be written. Reported once, not each second.
    func idFailed(_ error: RealtimeError) {
        guard !isClosed else { return Log.write(.warning, error.message) }
        guard !unstored.isBroken else { return }
        unstored.isBroken = true
        report(notice(error))
    }

    /// An error that does not end the connection.
    private func notice(_ error: RealtimeError) -> HTTPSourceFailure {
        HTTPSourceFailure(error: error)
    }
}
