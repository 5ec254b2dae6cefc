import Session
import Wire

/// What the user has subscribed, by whom each is used, and what the server must know of it.
final class DDPSubscriptionLedger {
    struct Record {
        let publication: DDPPlan.Publication
        var handles: [UInt64] = []
        var keep: Duration
        /// When it ends, unless it is used again.
        var endsAt: Instant?
        /// The server has sent its documents.
        var isReady = false
        /// And the user knows.
        var isReported = false
    }

    private let world: World
    /// By the id on the wire.
    private(set) var records: [String: Record] = [:]
    private(set) var idOfHandle: [UInt64: String] = [:]
    private(set) var readyHandles: Set<UInt64> = []
    private var stoppedHandles: Set<UInt64> = []
    /// Handles that the user has given up, of which reports may be on their way.
    private var released: Set<UInt64> = []
    /// What was sent on this connection.
    private var known: Set<String> = []
    /// Those that were sent, or were to be: the user may have replaced the connection before their
    /// messages reached it.
    private var everSent: Set<String> = []
    /// The last one that the user has stopped. Its message may be on its way to the driver.
    private var endedNow: (id: String, at: Instant)?

    init(_ world: World) { self.world = world }

    var handles: [UInt64] { idOfHandle.keys.sorted() }

    /// Subscriptions that the user knows to be ready.
    var ready: Set<String> { Set(records.filter { $0.value.isReported }.keys) }

    // MARK: The user

    /// - Parameter drawn: the id of a new subscription; nil if the machine drew none.
    func subscribed(
        _ handle: UInt64, _ publication: DDPPlan.Publication, keep: Duration, drawn: String?,
        isOpen: Bool
    ) {
        world.require(idOfHandle[handle] == nil, "handle \(handle) twice")
        expire()
        let equal = records.first { $0.value.publication == publication }?.key
        world.require(
            (equal == nil) == (drawn != nil), "\(publication.name) is shared, or should be")
        guard let id = equal ?? drawn else { return }
        if isOpen { everSent.insert(id) }
        if let equal {
            world.count(records[equal]?.handles.isEmpty == true ? "reused" : "shared")
        }
        records[id, default: Record(publication: publication, keep: keep)].handles.append(handle)
        records[id]?.keep = keep
        records[id]?.endsAt = nil
        idOfHandle[handle] = id
    }

    func released(_ handle: UInt64, atOnce: Bool) {
        released.insert(handle)
        guard let id = idOfHandle.removeValue(forKey: handle) else { return }
        records[id]?.handles.removeAll { $0 == handle }
        guard let record = records[id], record.handles.isEmpty else { return }
        if atOnce || record.keep == .zero {
            records[id] = nil
            endedNow = (id, world.now)
        } else {
            records[id]?.endsAt = world.now + record.keep
        }
    }

    private func expire() {
        for (id, record) in records {
            guard let end = record.endsAt, end <= world.now else { continue }
            world.count("expired")
            records[id] = nil
        }
    }

    // MARK: The connection

    func opened() { known = [] }

    /// Those that are used are sent again.
    func resent() {
        for (id, record) in records where record.handles.isEmpty { records[id] = nil }
        everSent.formUnion(records.keys)
    }

    func sent(_ id: String, name: String, params: [JSONValue]) {
        expire()
        world.require(known.insert(id).inserted, "\(name) is subscribed twice")
        let publication = DDPPlan.Publication(
            name: name, collection: params.first?.stringValue ?? "",
            value: params.last?.json ?? "")
        let isStoppedNow = endedNow.map { $0 == (id, world.now) } ?? false
        world.require(
            records[id]?.publication == publication || isStoppedNow,
            "\(name) is subscribed for nobody")
    }

    func sentEnd(_ id: String) {
        expire()
        world.require(everSent.contains(id), "ends a subscription that was never sent")
        world.require(records[id] == nil, "ends a subscription in use")
        known.remove(id)
    }

    func receivedReady(_ ids: [String]) { for id in ids { records[id]?.isReady = true } }

    func receivedEnd(_ id: String) {
        known.remove(id)
        guard let record = records.removeValue(forKey: id) else { return }
        for handle in record.handles { idOfHandle[handle] = nil }
    }

    /// After each turn: the server was sent exactly what is used.
    func check(isOpen: Bool, _ isReady: (UInt64) -> Bool) {
        expire()
        if isOpen {
            let wanted = Set(records.keys)
            world.require(
                known == wanted,
                "the server knows \(known.sorted()), and \(wanted.sorted()) are used")
        }
        for handle in idOfHandle.keys {
            world.require(
                isReady(handle) == readyHandles.contains(handle), "is handle \(handle) ready?")
        }
    }

    // MARK: Reports

    func ready(_ handle: UInt64) {
        guard !released.contains(handle) else { return }
        world.require(
            idOfHandle[handle].flatMap { records[$0]?.isReady } ?? wasEnded(handle),
            "handle \(handle) is ready too early")
        world.require(readyHandles.insert(handle).inserted, "handle \(handle) is ready again")
        if let id = idOfHandle[handle] {
            if records[id]?.isReported == true { world.count("ready at once") }
            records[id]?.isReported = true
        }
    }

    private func wasEnded(_ handle: UInt64) -> Bool { idOfHandle[handle] == nil }

    /// - Parameter hasFailed: the client has ended for good.
    func stopped(_ handle: UInt64, hasFailed: Bool) {
        guard !released.contains(handle) else { return }
        world.require(
            hasFailed || idOfHandle[handle] == nil, "handle \(handle) is stopped by nobody")
        world.require(stoppedHandles.insert(handle).inserted, "handle \(handle) is stopped twice")
        if let id = idOfHandle.removeValue(forKey: handle) {
            records[id]?.handles.removeAll { $0 == handle }
            if records[id]?.handles.isEmpty == true { records[id] = nil }
        }
    }

    func isDone(_ handle: UInt64) -> Bool {
        readyHandles.contains(handle) || stoppedHandles.contains(handle)
            || released.contains(handle)
    }

    /// In the end: all that is held is ready, and the server knows nothing else.
    func verify(_ known: Set<String>) {
        expire()
        let wanted = Set(records.keys)
        world.require(
            known == wanted, "the server has \(known.sorted()), and \(wanted.sorted()) are used")
        for handle in handles {
            world.require(readyHandles.contains(handle), "handle \(handle) is not ready")
        }
    }
}
