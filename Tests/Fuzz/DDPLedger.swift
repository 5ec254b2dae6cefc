/// What a Meteor client has reported, and what it may report next.
final class DDPFuzzLedger {
    struct Observed {
        let id: LiveQueryID
        let query: Query
        let collection: String
        var found: [Found]
    }

    private(set) var queries: [Observed] = []
    /// The documents as the notifications have them.
    private var documents: [DocumentKey: EJSONObject] = [:]
    private var touched: Set<DocumentKey> = []

    private var calls: Set<DDPSession.CallID> = []
    private var waits: Set<DDPSession.CallID> = []
    private var answered: Set<DDPSession.CallID> = []
    private var completed: Set<DDPSession.CallID> = []
    /// Sent on this connection, and not completed.
    private var inFlight: Set<DDPSession.CallID> = []
    private var hasGreeted = false

    private var subscribed: Set<DDPSession.SubscriptionHandle> = []
    private var ready: Set<DDPSession.SubscriptionHandle> = []
    private var awaited: Set<DDPSession.LoaderID> = []

    // MARK: The user

    func made(_ id: DDPSession.CallID) { calls.insert(id) }
    func subscribed(_ handle: DDPSession.SubscriptionHandle) { subscribed.insert(handle) }
    func letGo(_ handle: DDPSession.SubscriptionHandle) { subscribed.remove(handle) }

    /// The loader that was made last; nil if its subscriptions are ready. The others are closed.
    func awaits(_ loader: DDPSession.LoaderID?) { awaited = loader.map { [$0] } ?? [] }

    func observes(_ id: LiveQueryID, _ query: Query, _ collection: String, _ found: [Found]) {
        queries.append(Observed(id: id, query: query, collection: collection, found: found))
    }

    func stopObserving() -> LiveQueryID? { queries.isEmpty ? nil : queries.removeFirst().id }

    // MARK: The server

    func opened() {
        inFlight = []
        hasGreeted = false
    }

    func sent(_ message: [UInt8]) {
        let json = try? JSONValue(parsing: message)
        guard let kind = json?["msg"]?.stringValue else { fatalError("not a message") }
        require((kind == "connect") != hasGreeted, "\(kind) comes at the wrong time")
        hasGreeted = true
        guard kind == "method", let id = json?["id"]?.stringValue.flatMap({ UInt64($0) }) else {
            return
        }
        require(!completed.contains(id), "a call is sent after its end")
        require(inFlight.insert(id).inserted, "a call is sent twice")
    }

    // MARK: Reports

    func reported(_ report: DDPSession.Report) {
        switch report {
        case .changed(let notification): changed(notification)
        case .result(let id, _):
            require(answered.insert(id).inserted, "a second result of \(id)")
            require(!completed.contains(id), "a result of \(id) after its end")
        case .completed(let id, _):
            require(answered.contains(id), "\(id) is completed without a result")
            require(completed.insert(id).inserted, "\(id) is completed twice")
            inFlight.remove(id)
        case .ready(let handle):
            require(ready.insert(handle).inserted, "\(handle) is ready twice")
        case .stopped(let handle, _): subscribed.remove(handle)
        case .loaded(let loader, _):
            require(awaited.remove(loader) != nil, "\(loader) was not waited for")
        default: break
        }
    }

    private func changed(_ notification: Notification) {
        // A document may only have moved.
        require(!notification.changes.isEmpty || !notification.live.isEmpty, "nothing has changed")
        for change in notification.changes {
            require(documents[change.key] == change.before, "another document before a change")
            require(change.before != change.after, "a change that is none")
            documents[change.key] = change.after
            touched.insert(change.key)
        }
        for live in notification.live {
            guard let index = queries.firstIndex(where: { $0.id == live.query }) else { continue }
            for step in live.changes { queries[index].found.apply(step) }
        }
    }

    // MARK: After each event

    func compare(_ session: DDPSession) {
        for key in touched {
            require(session.store.document(key) == documents[key], "another document is stored")
        }
        guard !touched.isEmpty else { return }
        touched = []
        for query in queries {
            let found = try? session.store.find(query.query, in: query.collection)
            require(found == query.found, "a live query has another result")
        }
    }

    func end() {
        require(calls.isSubset(of: completed), "calls that never end")
        require(subscribed.isEmpty, "subscriptions that never end")
        require(awaited.isEmpty, "loaders that wait for ever")
    }
}
