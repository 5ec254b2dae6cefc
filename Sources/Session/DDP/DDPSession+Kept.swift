import Documents
package import Wire

/// When the documents are kept for the next run.
struct DDPKeeping: Sendable {
    /// They are kept at all.
    var isOn = false
    /// When they are written next; nil if nothing has changed.
    var due: Instant?
    /// They are being written.
    var isWriting = false
    /// They have changed since that began.
    var isChanged = false
    /// Not earlier, because writing takes long.
    private var notBefore = Instant(nanoseconds: 0)

    /// How long changes are gathered.
    private static let delay = Duration.seconds(1)
    /// Writing takes at most this part of the time.
    private static let share = 20

    mutating func changed(_ now: Instant) {
        guard isOn else { return }
        if isWriting {
            isChanged = true
        } else if due == nil {
            due = max(now + DDPKeeping.delay, notBefore)
        }
    }

    mutating func ended(took time: Duration, now: Instant) {
        isWriting = false
        notBefore = now + time * DDPKeeping.share
        guard isChanged else { return }
        isChanged = false
        changed(now)
    }
}

/// Documents of an earlier run that the server has not sent again yet.
struct DDPStale: Sendable {
    var documents: Set<DocumentKey> = []
    /// The subscriptions that were ready, by name and parameters.
    var subscriptions: [ByteText: EJSON] = [:]
    /// Those of them that the server has refused or ended.
    var ended: Set<ByteText> = []
    /// When the wait for the server ends in any case; nil without a connection.
    var due: Instant?
    /// Nothing is waited for any more.
    var isOver = false

    /// How long the server is waited for if quiescence has no limit.
    static let limit = Duration.seconds(30)
}

// Documents that outlive the process. They are there at once after a restart. When the server has
// made all subscriptions ready that were ready before, those that it has not sent are removed.
extension DDPSession {
    /// Whether some documents are of an earlier run, and the server has not sent them again yet.
    package var hasStaleDocuments: Bool { stale != nil }

    /// Keeps no documents any more.
    /// - Returns: whether something has changed that was not written, or is being written.
    package mutating func endKeeping() -> Bool {
        defer { keeping = DDPKeeping() }
        return hasUnkeptDocuments && !quiescence.isResetting
    }

    /// Whether something has changed that was not written, or is being written.
    package var hasUnkeptDocuments: Bool {
        keeping.due != nil || keeping.isWriting || keeping.isChanged
    }

    /// Keeps documents from now on. Before anything else is done.
    /// - Parameter kept: of an earlier run; used if they are of the same user.
    package mutating func keepDocuments(_ kept: DDPKeptDocuments?) {
        keeping.isOn = true
        guard let kept, accounts.userID.hasSameBytes(as: kept.userID) else { return }
        var stale = DDPStale()
        store.beginBatch()
        for collection in kept.collections {
            for (id, fields) in collection.documents where store.bytes < store.maximumBytes {
                let key = DocumentKey(collection: collection.name, id: id)
                if store.insert(key, fields) { stale.documents.insert(key) }
            }
        }
        _ = store.endBatch()
        for subscription in kept.subscriptions {
            stale.subscriptions[ByteText(subscription.canonicalText)] = subscription
        }
        if !stale.documents.isEmpty { self.stale = stale }
    }

    /// The documents as the server has sent them: without what stubs have done.
    package mutating func keptDocuments() -> DDPKeptDocuments {
        var ready: [EJSON] = []
        for subscription in subscriptions.inOrder where subscription.isReady {
            ready.append(.array([.string(subscription.name)] + subscription.params))
        }
        for (key, subscription) in stale?.subscriptions ?? [:]
        where stale?.ended.contains(key) == false
            && subscriptions.matching(key).map({ !$0.isReady }) ?? true
        {
            ready.append(subscription)
        }
        var collections: [DDPKeptDocuments.Collection] = []
        let snapshots = stubs.snapshots
        // What stubs have removed, by collection.
        var removed: [ByteText: [(id: DocumentID, fields: EJSONObject)]] = [:]
        for (key, snapshot) in snapshots where store.document(key) == nil {
            guard let snapshot else { continue }
            removed[ByteText(key.collection), default: []].append((key.id, snapshot))
        }
        for name in store.names {
            var documents: [(id: DocumentID, fields: EJSONObject)] = []
            for (id, fields) in store.documents(in: name) {
                let key = DocumentKey(collection: name, id: id)
                guard let snapshot = snapshots[key] else {
                    documents.append((id, fields))
                    continue
                }
                if let snapshot { documents.append((id, snapshot)) }
            }
            documents += removed[ByteText(name)] ?? []
            if !documents.isEmpty {
                collections.append(DDPKeptDocuments.Collection(name: name, documents: documents))
            }
        }
        return DDPKeptDocuments(
            userID: accounts.userID, subscriptions: ready, collections: collections)
    }

    /// The documents were written, or could not be.
    package mutating func keptDocuments(took time: Duration, now: Instant) {
        keeping.ended(took: time, now: now)
    }

    mutating func writeDocuments(_ now: Instant) {
        guard let due = keeping.due, due <= now else { return }
        keeping.due = nil
        // They may be of a user who is not logged in any more. What replaces them is written.
        guard !quiescence.isResetting else { return }
        keeping.isWriting = true
        act(.keep)
    }

    // MARK: Stale documents

    /// The server has sent a document.
    /// - Returns: whether it was stale.
    mutating func confirm(_ key: DocumentKey) -> Bool {
        stale?.documents.remove(key) != nil
    }

    /// The server has refused a subscription, or ended it: its stale documents will not come again.
    mutating func staleSubscriptionEnded(_ subscription: DDPSubscription, _ now: Instant) {
        guard stale != nil else { return }
        stale?.ended.insert(DDPSubscription.key(subscription.name, subscription.params))
        flush(now)
    }

    /// A new session of the server begins. Until the first one has sent everything, the documents
    /// of earlier ones stay.
    /// - Returns: whether that is so.
    mutating func staleDocumentsStay() -> Bool {
        guard stale != nil else { return false }
        for name in store.names {
            for (id, _) in store.documents(in: name) {
                stale?.documents.insert(DocumentKey(collection: name, id: id))
            }
        }
        return true
    }

    /// Stale documents belong to a user who is not logged in any more, and are gone before anybody
    /// hears of the new one. The others do not: the server has sent what differs before it
    /// answered.
    mutating func userChanged(_ now: Instant) {
        if keeping.isOn { keeping.due = Instant(nanoseconds: 0) }
        guard stale != nil else { return }
        stale?.isOver = true
        flushAtOnce(now)
    }

    /// Removes the documents that the server did not send again, if it has sent everything.
    /// - Returns: whether that is so.
    mutating func removeStaleDocuments() -> Bool {
        guard var documents = stale?.documents, stale?.isOver == true || isConfirmed else {
            return false
        }
        stale = nil
        // In the order of the documents, so that equal runs do the same.
        for name in store.names {
            for (id, _) in store.documents(in: name) {
                let key = DocumentKey(collection: name, id: id)
                if documents.remove(key) != nil, !keepsOwnDocument(key) { removeAsServer(key) }
            }
        }
        // Stubs have removed the others here, and some may be about to come back.
        for key in documents where !keepsOwnDocument(key) { removeAsServer(key) }
        return true
    }

    /// The server has made all subscriptions ready that were ready before, or has ended them.
    private var isConfirmed: Bool {
        guard connection != nil, !quiescence.isWaiting,
            let stale, !stale.subscriptions.isEmpty
        else { return false }
        return stale.subscriptions.keys.allSatisfy { key in
            if stale.ended.contains(key) { return true }
            guard let subscription = subscriptions.matching(key) else { return false }
            return subscription.isReady || afterFlush.contains(.subscription(subscription.id))
        }
    }
}
