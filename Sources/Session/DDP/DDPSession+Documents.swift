import Documents
import Wire

// Documents that the server sends: when they are held back, and when they are applied.
extension DDPSession {
    /// Changes of documents, and what must not overtake them.
    mutating func receivedData(_ message: DDPMessage, _ bytes: Int, _ now: Instant) {
        if quiescence.isWaiting {
            quiescence.hold(message, bytes: bytes)
            if quiescence.heldBytes > min(DDPConfiguration.heldBytesLimit, store.maximumBytes) {
                log("too many messages are held back; they are applied early")
                quiescence.giveUp()
            }
            if !quiescence.isWaiting { flush(now) }
            return
        }
        process(message)
        failAtLimit(now)
        guard isBuffered(message), configuration.bufferInterval > .zero else { return flush(now) }
        if store.bufferedSteps >= DDPConfiguration.unappliedLimit { return flush(now) }
        if let flushBy, flushBy < now { return flush(now) }
        if flushBy == nil { flushBy = now + configuration.bufferMaxAge }
        flushDue = now + configuration.bufferInterval
    }

    /// Whether what was received waits for what follows. Messages that are not documents make it
    /// visible at once; but if it places documents before others, which takes time for the whole
    /// collection, and nothing waits for it, only after as many messages as justify that time.
    private mutating func isBuffered(_ message: DDPMessage) -> Bool {
        if case .document = message { return true }
        placingCredit = min(
            placingCredit + DDPConfiguration.placingCredit, DDPConfiguration.placingCreditLimit)
        let cost = store.placingCost
        if case .nosub(let id, _) = message, subscriptions[id] != nil { return false }
        if cost > placingCredit, afterFlush.isEmpty, !quiescence.isResetting { return true }
        placingCredit = max(0, placingCredit - cost)
        return false
    }

    /// The wait for the server takes too long.
    mutating func endQuiescence(_ now: Instant) {
        guard let due = quiescence.due, due <= now else { return }
        log("the server took too long to send everything again")
        quiescence.giveUp()
        flush(now)
    }

    /// Begins to measure how long messages are held back, or ends it.
    mutating func measureQuiescence(_ now: Instant) {
        guard quiescence.isWaiting, connection != nil, configuration.quiescenceLimit > .zero else {
            quiescence.due = nil
            return
        }
        if quiescence.due == nil { quiescence.due = now + configuration.quiescenceLimit }
    }

    mutating func process(_ message: DDPMessage) {
        switch message {
        case .document(let message): process(message)
        case .ready(let ids): for id in ids { subscriptionReady(id) }
        case .updated(let ids):
            for id in ids { if let id = DDPSession.callID(id) { methodUpdated(id) } }
        // It had its effect when it came.
        case .nosub: break
        case .connected, .failed, .ping, .pong, .result, .error: break
        }
    }

    private mutating func process(_ message: DDPDocumentMessage) {
        let key = DocumentKey(collection: message.collection, id: message.id)
        if receivedOwnDocument(key, message) { return }
        if stale != nil, confirm(key) { return replaceDocument(key, message) }
        guard stubs.contains(key) else { return buffer(message.update, key) }
        switch message.change {
        case .added(let fields): added(fields, key)
        case .addedBefore(let fields, let before):
            added(fields, key)
            buffer(.movedBefore(EJSONObject(), before: before), key)
        case .changed(let fields, let cleared):
            editSnapshot(key) { $0 = ($0 ?? EJSONObject()).merging(fields, cleared: cleared) }
        case .movedBefore: buffer(message.update, key)
        case .removed: editSnapshot(key) { $0 = nil }
        }
    }

    /// The server has sent a document that is there from an earlier session. It replaces that one
    /// as a whole.
    mutating func replaceDocument(_ key: DocumentKey, _ message: DDPDocumentMessage) {
        var before: DocumentID??
        let fields: EJSONObject
        switch message.change {
        case .added(let new): fields = new
        case .addedBefore(let new, let place): (fields, before) = (new, place)
        case .changed(let new, _): fields = new
        case .movedBefore: return
        case .removed: return removeAsServer(key)
        }
        if stubs.contains(key) {
            editSnapshot(key) { $0 = fields }
        } else {
            buffer(.replaced(fields), key)
        }
        if let before { buffer(.movedBefore(EJSONObject(), before: before), key) }
    }

    /// Removes a document as a message of the server does.
    mutating func removeAsServer(_ key: DocumentKey) {
        if stubs.contains(key) {
            editSnapshot(key) { $0 = nil }
        } else {
            buffer(.removed, key)
        }
    }

    /// A document that a stub has written.
    private mutating func added(_ fields: EJSONObject, _ key: DocumentKey) {
        guard quiescence.isResetting else {
            return editSnapshot(key) { $0 = $0?.merging(fields, cleared: []) ?? fields }
        }
        editSnapshot(key) { $0 = fields }
        // What the stub wrote stays visible.
        buffer(.added(store.document(key) ?? fields), key)
    }

    private mutating func editSnapshot(
        _ key: DocumentKey, _ body: (inout EJSONObject?) -> Void
    ) {
        stubs.edit(key, body)
        if stubs.bytes > store.maximumBytes { isFull = true }
    }

    private mutating func buffer(_ update: DocumentUpdate, _ key: DocumentKey) {
        if !store.buffer(update, for: key) { isFull = true }
    }

    /// Fails if the store has refused a document, because it cannot be what the server means any
    /// more.
    mutating func failAtLimit(_ now: Instant) {
        // After each message.
        guard isFull, let number = socket else { return }
        let bytes = store.maximumBytes
        let limit = bytes >= 1 << 20 ? "\(bytes >> 20) MiB" : "\(bytes) bytes"
        let error = RealtimeError(
            .bufferFull,
            "the documents of the server take more than \(limit)"
                + OptionOwner.ddp.mention(.maxDocumentBytes))
        act(.drop(number))
        fail(error.message, error, now)
    }

    /// Something waits until everything that was sent is in the store.
    mutating func whenFlushed(_ event: DDPVisibility) {
        if !stubs.wait(event) { afterFlush.append(event) }
    }

    /// The server has sent everything that a call wrote.
    mutating func releaseStub(_ id: CallID) {
        let methods = methods
        let (documents, visible) = stubs.finish(id) { methods.isSent($0) }
        for (key, snapshot) in documents {
            // It is still to come.
            if snapshot == nil, key == own.kept { continue }
            buffer(.replaced(snapshot), key)
        }
        afterFlush += visible
    }

    // MARK: Sessions

    /// The server has confirmed the connection, with a session.
    mutating func sessionBegan(_ session: String?, _ number: UInt64, _ now: Instant) {
        let last = sessionID
        if let session { sessionID = session }
        if let session, let last, session.utf8.elementsEqual(last.utf8) {
            if own.kept != nil { ownDocumentWaits(now) }
            sessionResumed(now)
        } else {
            sessionIsNew(hadOne: last != nil, number, now)
        }
        let limit = configuration.quiescenceLimit
        stale?.due = now + (limit > .zero ? limit : DDPStale.limit)
        measureQuiescence(now)
    }

    /// The server has kept the session, and sends what it queued.
    private mutating func sessionResumed(_ now: Instant) {
        if finishAbandoned() { flush(now) }
        // An `unsub` may have been lost with its connection; but its answer may be on the way.
        if !subscriptions.unanswered.isEmpty {
            subscriptions.unansweredDue = now + DDPConfiguration.answerTimeout
        }
    }

    /// Sends again what the server would have answered by now.
    mutating func repeatUnsubs(_ now: Instant) {
        guard let due = subscriptions.unansweredDue, due <= now, let connection else { return }
        subscriptions.unansweredDue = nil
        // In an order that equal runs share.
        for (id, socket) in subscriptions.unanswered.sorted(by: { $0.key.text < $1.key.text })
        where socket != connection {
            send(DDPWriter.unsub(id: id.text), now)
            subscriptions.ends(id.text, on: connection)
        }
    }

    private mutating func sessionIsNew(hadOne: Bool, _ number: UInt64, _ now: Instant) {
        receivedCount = 1
        subscriptions.forgetEnds(exceptOn: number)
        keepOwnDocument(hadSession: hadOne)
        if hadOne {
            quiescence.isResetting = !staleDocumentsStay()
            stubs.removeAll()
            store.dropBuffer()
            flushDue = nil
            flushBy = nil
        }
        stubs.removeWaiters()
        afterFlush = []
        subscriptions.changeAll { $0.isReadyPending = false }
        quiescence.giveUp()
        _ = quiescence.takeHeld()
        for subscription in subscriptions.inOrder where subscription.isReady {
            quiescence.reviving.insert(ByteText(subscription.id))
        }
        let hasAbandoned = hadOne ? false : finishAbandoned()
        if hadOne {
            for id in methods.sortedIDs {
                guard let method = methods.byID[id] else { continue }
                if method.result != nil {
                    afterFlush.append(.method(id))
                } else if method.isSent {
                    quiescence.blocking.insert(id)
                }
            }
        }
        if !quiescence.isWaiting, hadOne || hasAbandoned { flush(now) }
    }

    /// Calls that will not be answered count as done, in order.
    /// - Returns: whether there are any.
    private mutating func finishAbandoned() -> Bool {
        let ids = methods.sortedIDs.filter { methods.byID[$0]?.isAbandoned ?? false }
        for id in ids {
            quiescence.blocking.remove(id)
            releaseStub(id)
            afterFlush.append(.method(id))
        }
        return !ids.isEmpty
    }
}

extension DDPDocumentMessage {
    fileprivate var update: DocumentUpdate {
        switch change {
        case .added(let fields): .added(fields)
        case .addedBefore(let fields, let before): .addedBefore(fields, before: before)
        case .changed(let fields, let cleared): .changed(fields: fields, cleared: cleared)
        case .movedBefore(let before): .movedBefore(EJSONObject(), before: before)
        case .removed: .removed
        }
    }
}

extension EJSONObject {
    fileprivate func merging(_ other: EJSONObject, cleared: [String]) -> EJSONObject {
        var merged = self
        _ = merged.merge(other, cleared: cleared)
        return merged
    }
}
