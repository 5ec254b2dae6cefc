import Documents
import Session
import Wire

/// What the server has sent of each document, and what the client has reported of it.
final class DDPDocumentLedger {
    private let world: World
    private let limit: Duration
    /// Delivered in the present session.
    private(set) var received: [DocumentKey: EJSONObject] = [:]
    /// As the client's notifications say.
    private(set) var mirror: [DocumentKey: EJSONObject] = [:]
    /// Documents that stubs have written, or that came while a call held others up: they may
    /// differ from what the server has sent until nothing is outstanding.
    private var tainted: Set<DocumentKey> = []

    /// Documents of an earlier run that the server has not sent again.
    private var stale: Set<DocumentKey> = []

    private(set) var sessionID: String?
    /// The documents of a former session are there until the new ones are.
    private(set) var isResetting = false
    private var reviving: Set<String> = []
    private var blocking: Set<String> = []
    private var waitsUntil: Instant?
    private var isConnected = false

    /// The document of the user who is logged in, as the client says and as it has reported; nil
    /// for nobody.
    private var own: (now: DocumentKey?, reported: DocumentKey?)
    /// A login is in progress, so that the server may have removed the user's own document, or not
    /// sent it yet.
    private var isLoggingIn = false
    private var wasLoggingIn = false
    private var isLoginOfAnother = false
    /// The user's own document may be kept until then without being the server's.
    private var ownUntil: Instant

    init(_ world: World, limit: Duration) {
        self.world = world
        self.limit = limit
        ownUntil = world.now
    }

    var isWaiting: Bool {
        guard !reviving.isEmpty || !blocking.isEmpty else { return false }
        return waitsUntil.map { world.now < $0 } ?? true
    }

    /// The client begins with documents of an earlier run.
    func begins(with documents: [DocumentKey: EJSONObject]) {
        mirror = documents
        stale = Set(documents.keys)
    }

    /// The client says that they are replaced.
    func areCurrent() {
        world.require(!stale.isEmpty || hasConfirmed, "current twice, or for no reason")
        stale = []
        hasConfirmed = false
    }

    /// The client writes its documents for the next run.
    func areKept(_ kept: DDPKeptDocuments) {
        var documents: [DocumentKey: EJSONObject] = [:]
        for collection in kept.collections {
            for (id, fields) in collection.documents {
                documents[DocumentKey(collection: collection.name, id: id)] = fields
            }
        }
        for key in Set(documents.keys).union(mirror.keys) where !isTainted(key) {
            world.require(documents[key] == mirror[key], "\(key.text) is kept in another form")
        }
    }

    /// A document of an earlier run has come again.
    private var hasConfirmed = false

    /// A stub writes a document.
    func stubWrites(_ key: DocumentKey) {
        taint(key)
        guard isResetting else { return }
        world.count("wrote during a reset")
        if mirror[key] != nil, received[key] == nil { world.count("wrote a former document") }
    }

    private func taint(_ key: DocumentKey) { tainted.insert(key) }

    func isTainted(_ key: DocumentKey) -> Bool { tainted.contains(key) }

    // MARK: The user's own document

    /// - Parameters:
    ///   - user: the one that is logged in.
    ///   - reported: the one that the client has reported last.
    ///   - isLoggingIn: whether a login has been sent that has not ended, or waits to be repeated.
    ///   - wasLoggingIn: the same, when what is reported happened.
    ///   - isOfAnother: the login is that of another user.
    func knows(
        _ user: String?, reported: String?, isLoggingIn: Bool, wasLoggingIn: Bool,
        isOfAnother: Bool
    ) {
        func key(_ user: String?) -> DocumentKey? {
            user.flatMap { DocumentID(wire: $0) }.map { DocumentKey(collection: "users", id: $0) }
        }
        own = (key(user), key(reported))
        self.isLoggingIn = isLoggingIn
        self.wasLoggingIn = wasLoggingIn
        self.isLoginOfAnother = isOfAnother
    }

    /// A login has ended. The user's own document may come a little later.
    func loginEnded() { ownUntil = world.now + .seconds(1) }

    private func mayBeKept(_ key: DocumentKey) -> Bool {
        (key == own.now || key == own.reported)
            && (isLoggingIn || !isConnected || world.now <= ownUntil)
    }

    private func checkOwn(_ change: DocumentChange) {
        let isOwn = change.key == own.now && change.key == own.reported
        guard isOwn, change.after == nil, wasLoggingIn, !isLoginOfAnother else { return }
        world.fail("the user's own document vanishes during a login")
    }

    /// Nothing is outstanding.
    func settled() {
        if !isWaiting { tainted = [] }
    }

    // MARK: Sessions

    /// - Parameters:
    ///   - ready: subscriptions that were ready.
    ///   - calls: those that were sent on this connection.
    func connected(_ id: String, ready: Set<String>, calls: Set<String>) {
        isConnected = true
        loginEnded()
        defer { sessionID = id }
        defer { measure() }
        guard id != sessionID else {
            if !isWaiting { giveUp() }
            return
        }
        received = [:]
        reviving = ready
        blocking = []
        guard sessionID != nil else { return }
        blocking = calls
        guard stale.isEmpty, !hasConfirmed else {
            stale.formUnion(mirror.keys)
            return
        }
        world.count("emptied")
        isResetting = true
        if !isWaiting { isResetting = false }
    }

    /// The time in which it must be over begins, or has ended.
    private func measure() {
        let waits = isConnected && (!reviving.isEmpty || !blocking.isEmpty)
        waitsUntil = waits ? waitsUntil ?? world.now + limit : nil
    }

    func lost() {
        checkTime()
        isConnected = false
        waitsUntil = nil
    }

    func heldUp(by call: String) {
        blocking.insert(call)
        measure()
    }

    /// A call will get no answer.
    func abandoned(_ call: String) { blocking.remove(call) }

    /// A message has been delivered.
    func received(_ kind: String, _ json: JSONValue) {
        checkTime()
        func ids(_ name: String) -> [String] {
            (json[name]?.arrayValue ?? []).compactMap { $0.stringValue }
        }
        switch kind {
        case "added", "changed", "removed": document(kind, json)
        case "ready": reviving.subtract(ids("subs"))
        case "nosub": if let id = json["id"]?.stringValue { reviving.remove(id) }
        case "updated": blocking.subtract(ids("methods"))
        default: return
        }
        if !isWaiting { giveUp() }
    }

    private func checkTime() {
        if let waitsUntil, world.now >= waitsUntil { giveUp() }
    }

    private func giveUp() {
        if isResetting || !reviving.isEmpty || !blocking.isEmpty { loginEnded() }
        isResetting = false
        reviving = []
        blocking = []
        waitsUntil = nil
    }

    private func document(_ kind: String, _ json: JSONValue) {
        guard let collection = json["collection"]?.stringValue,
            let id = json["id"]?.stringValue.flatMap({ DocumentID(wire: $0) })
        else { return }
        let key = DocumentKey(collection: collection, id: id)
        if isWaiting, !isResetting { taint(key) }
        if stale.remove(key) != nil { hasConfirmed = true }
        guard kind != "removed" else { return received[key] = nil }
        var fields = received[key] ?? EJSONObject()
        if let text = json["fields"]?.json, case .object(let new)? = try? EJSON(parsing: text) {
            for field in new.fields { fields[field.name] = field.value }
        }
        for name in json["cleared"]?.arrayValue ?? [] {
            if let name = name.stringValue { fields[name] = nil }
        }
        received[key] = fields
    }

    // MARK: The client's reports

    func notified(_ changes: [DocumentChange]) {
        checkTime()
        var isFlush = false
        for change in changes {
            let key = change.key
            world.require(mirror[key] == change.before, "\(key.text) was not as its change says")
            world.require(change.before != change.after, "no change of \(key.text)")
            checkOwn(change)
            mirror[key] = change.after
            if !isTainted(key) { isFlush = true }
        }
        // A stub changes only what it taints.
        if isFlush { checkAll("a change") }
    }

    /// Everything that the server has sent is visible.
    func checkAll(_ occasion: String) {
        if !isWaiting { giveUp() }
        world.require(
            !isResetting, "\(occasion), and \(reviving.union(blocking).sorted()) did not come again"
        )
        for (key, fields) in received where !isTainted(key) {
            world.require(
                mirror[key] == fields, "\(occasion): \(key.text) is \(text(mirror[key]))")
        }
        for key in mirror.keys
        where received[key] == nil && !isTainted(key) && !stale.contains(key) {
            if mayBeKept(key) {
                world.count("kept the user's document")
                continue
            }
            world.fail("\(occasion): \(key.text) is there, and the server has none")
        }
    }

    private func text(_ fields: EJSONObject?) -> String {
        fields.map { EJSON.object($0).text } ?? "not there"
    }

    /// The store has what was reported.
    func compare(_ store: DocumentStore) {
        var count = 0
        for collection in DDPPlan.collections + ["users", "unknown"] {
            for (id, fields) in store.documents(in: collection) {
                count += 1
                let key = DocumentKey(collection: collection, id: id)
                world.require(mirror[key] == fields, "a change of \(key.text) was not reported")
            }
        }
        world.require(count == mirror.count, "a removed document was not reported")
    }

    /// At the end: exactly what the server publishes.
    func verify(_ view: [DDPServerKey: DDPServerFields]) {
        world.require(tainted.isEmpty, "something is outstanding")
        world.require(stale.isEmpty, "documents of an earlier run are left")
        checkAll("in the end")
        var published: [DocumentKey: EJSONObject] = [:]
        for (key, fields) in view {
            guard let id = DocumentID(wire: key.id),
                case .object(let object)? = try? EJSON(parsing: DDPServerSession.json(fields))
            else { return world.fail("the server publishes no document: \(key.id)") }
            published[DocumentKey(collection: key.collection, id: id)] = object
        }
        world.require(received == published, "the server has sent something else in the end")
        world.count("equal")
        world.require(mirror == published, "other documents than the server's in the end")
    }
}

extension DocumentKey {
    var text: String { "\(collection) \(id.wire)" }
}
