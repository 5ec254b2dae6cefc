import Wire

/// A subscription at the server. All that ask for the same name and parameters share it.
struct DDPSubscription: Sendable {
    let id: String
    let name: String
    let params: [EJSON]
    /// In the order in which they subscribed.
    var handles: [DDPSession.SubscriptionHandle] = []
    /// How long it is kept without handles.
    var keep: Duration
    /// Sent on this connection.
    var isSent = false
    /// Sent on any connection, so a session that is resumed may have it.
    var wasSent = false
    /// The server is ready, and its documents will be visible soon.
    var isReadyPending = false
    var isReady = false

    static func key(_ name: String, _ params: [EJSON]) -> ByteText {
        ByteText(EJSON.array([.string(name)] + params).canonicalText)
    }
}

/// The subscriptions of a client, in the order in which they were made.
struct DDPSubscriptions: Sendable {
    /// By id.
    private var entries: [ByteText: DDPSubscription] = [:]
    /// By name and parameters.
    private var idsByKey: [ByteText: String] = [:]
    /// By the order of creation.
    private var ids: [String?] = []
    private var positions: [ByteText: Int] = [:]
    private var subscriptionOfHandle: [DDPSession.SubscriptionHandle: String] = [:]
    /// The subscriptions without handles.
    private var unused = DueQueue<ByteText>()
    private var lastHandle: DDPSession.SubscriptionHandle = 0
    /// Dropped while there was no connection, and the server may have them.
    var dropped: [String] = []
    /// The `unsub` was sent and not answered: the number of the socket.
    private(set) var unanswered: [ByteText: UInt64] = [:]
    /// When those of earlier sockets are sent again.
    var unansweredDue: Instant?

    var isEmpty: Bool { entries.isEmpty }

    /// An `unsub` is sent.
    mutating func ends(_ id: String, on socket: UInt64) {
        // A server that answers none must not fill the memory.
        let id = ByteText(id)
        guard unanswered.count < DDPConfiguration.unansweredLimit || unanswered[id] != nil else {
            return
        }
        unanswered[id] = socket
    }

    /// The server has ended it.
    mutating func hasEnded(_ id: String) { unanswered[ByteText(id)] = nil }

    /// The server is another one, or has lost what it was sent before.
    mutating func forgetEnds(exceptOn socket: UInt64) {
        unanswered = unanswered.filter { $0.value == socket }
    }

    /// In the order in which they were made.
    var inOrder: [DDPSubscription] { ids.compactMap { $0.flatMap { self[$0] } } }

    mutating func nextHandle() -> DDPSession.SubscriptionHandle {
        lastHandle += 1
        return lastHandle
    }

    func matching(_ name: String, _ params: [EJSON]) -> String? {
        idsByKey[DDPSubscription.key(name, params)]
    }

    /// - Parameter key: of `DDPSubscription.key`.
    func matching(_ key: ByteText) -> DDPSubscription? { idsByKey[key].flatMap { self[$0] } }

    subscript(handle: DDPSession.SubscriptionHandle) -> DDPSubscription? {
        subscriptionOfHandle[handle].flatMap { self[$0] }
    }

    subscript(id: String) -> DDPSubscription? { entries[ByteText(id)] }

    /// Changes a subscription that is there.
    mutating func change(_ id: String, _ body: (inout DDPSubscription) -> Void) {
        guard let index = entries.index(forKey: ByteText(id)) else { return }
        body(&entries.values[index])
    }

    mutating func changeAll(_ body: (inout DDPSubscription) -> Void) {
        for index in entries.values.indices { body(&entries.values[index]) }
    }

    mutating func insert(_ subscription: DDPSubscription) {
        entries[ByteText(subscription.id)] = subscription
        idsByKey[DDPSubscription.key(subscription.name, subscription.params)] = subscription.id
        positions[ByteText(subscription.id)] = ids.count
        ids.append(subscription.id)
    }

    mutating func use(_ id: String, by handle: DDPSession.SubscriptionHandle, keep: Duration) {
        subscriptionOfHandle[handle] = id
        unused.remove(ByteText(id))
        change(id) {
            $0.handles.append(handle)
            $0.keep = keep
        }
    }

    /// The handle is not used any more.
    /// - Returns: its subscription, if it was the last handle.
    mutating func release(_ handle: DDPSession.SubscriptionHandle) -> DDPSubscription? {
        guard let id = subscriptionOfHandle.removeValue(forKey: handle) else { return nil }
        change(id) { $0.handles.removeAll { $0 == handle } }
        guard let subscription = self[id], subscription.handles.isEmpty else { return nil }
        return subscription
    }

    mutating func remove(_ id: String) -> DDPSubscription? {
        let id = ByteText(id)
        guard let subscription = entries.removeValue(forKey: id) else { return nil }
        idsByKey[DDPSubscription.key(subscription.name, subscription.params)] = nil
        if let position = positions.removeValue(forKey: id) { ids[position] = nil }
        if ids.count > 2 * entries.count + 16 { compact() }
        unused.remove(id)
        for handle in subscription.handles { subscriptionOfHandle[handle] = nil }
        return subscription
    }

    private mutating func compact() {
        ids.removeAll { $0 == nil }
        for (position, id) in ids.enumerated() { if let id { positions[ByteText(id)] = position } }
    }

    /// Keeps a subscription without handles until then.
    mutating func keepUnused(_ id: String, until due: Instant) {
        unused.set(ByteText(id), due: due)
    }

    /// When the first unused subscription ends.
    var endDue: Instant? { unused.first }

    /// Takes the unused subscriptions that have ended, in the order of their ends.
    mutating func takeEnded(_ now: Instant) -> [String] {
        unused.takeDue(now).map { $0.text }
    }
}

/// A group of subscriptions that are waited for together.
struct DDPLoader: Sendable {
    var handles: [DDPSession.SubscriptionHandle] = []
    /// Those that are neither ready nor ended.
    var pending: Set<DDPSession.SubscriptionHandle> = []
    /// The first one.
    var error: DDPError?
    /// `loaded` is to be reported.
    var isAwaited = false
}
