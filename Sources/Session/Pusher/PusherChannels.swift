import Wire

/// A channel that is registered, or whose subscription must still be undone.
struct PusherChannelEntry: Sendable {
    struct ClientEvent: Sendable {
        let event: String
        let data: JSONText?
        let room: (any PusherEventRoom)?
    }

    let name: PusherChannelName
    /// nil once it is unsubscribed.
    let registration: (any PusherRegistration)?
    /// Channels are subscribed in the order of this number.
    let order: UInt64
    var state = PusherChannelState.idle
    /// It was unsubscribed while the server's answer to its subscription was awaited.
    var isCancelled = false
    /// The next registration of its name, which waits until this cancelled one has been answered.
    var successor: PusherChannels.ID?
    /// The cancelled registration that this one waits for. Until then, what the server sends
    /// belongs to that one.
    var predecessor: PusherChannels.ID?
    /// Given for the next subscription, or waiting for the user to be signed in.
    var answer: PusherAuthorizationAnswer?
    /// The channel needs a user. If it is not `.authorizing`, it has failed because there was none.
    var waitsForUser = false
    /// The number of the request for its authorization.
    var request: UInt64?
    /// How often the authorization was repeated.
    var repetitions = 0
    /// When the subscription was sent.
    var sentAt = Instant(nanoseconds: 0)
    /// The number of the first ping after it; 0 if none was sent on this connection.
    var fence: UInt64 = 0
    var clientEvents: [ClientEvent] = []
    var presence = PusherPresenceTable()
    /// The user id in the channel's data.
    var ownID: String?
    var encryption = PusherEncryption()

    init(
        name: PusherChannelName, order: UInt64, _ registration: (any PusherRegistration)? = nil
    ) {
        self.name = name
        self.registration = registration
        self.order = order
    }

    /// What is left of a channel that was unsubscribed: a subscription that was sent.
    init(cancelling old: PusherChannelEntry) {
        self.init(name: old.name, order: old.order)
        state = old.state
        sentAt = old.sentAt
        fence = old.fence
        isCancelled = true
    }

    /// Ends the wait for the user.
    /// - Returns: the authorization that waited; nil if none did.
    mutating func takeWaitingAnswer() -> PusherAuthorizationAnswer? {
        guard waitsForUser else { return nil }
        defer { answer = nil }
        waitsForUser = false
        return answer
    }
}

/// The channels of a connection, by id and by name.
struct PusherChannels: Sendable {
    typealias ID = PusherSession.ChannelID

    /// What a message needs to know about its channel.
    struct Route: Sendable {
        /// 0 for the channel of the user.
        let id: ID
        let isEncrypted: Bool
        let isCancelled: Bool
        /// The driver's object; nil once it is unsubscribed, and for the channel of the user.
        var registration: (any PusherRegistration)?
    }

    private var routes = ByteTable<Route>()
    private var entries: [ID: PusherChannelEntry] = [:]
    private var lastOrder: UInt64 = 0

    static let userRoute = Route(id: 0, isEncrypted: false, isCancelled: false)

    subscript(id: ID) -> PusherChannelEntry? {
        get { entries[id] }
        _modify { yield &entries[id] }
    }

    subscript(name: UnsafeRawBufferPointer) -> Route? { routes[name] }
    subscript(name: String) -> Route? { routes[name] }

    /// Whether the channel exists for the application.
    func isRegistered(_ id: ID) -> Bool { entries[id].map { !$0.isCancelled } ?? false }

    /// The channel of this name that exists for the application.
    func registered(_ name: String) -> ID? {
        guard let route = routes[name] else { return nil }
        return route.isCancelled ? entries[route.id]?.successor : route.id
    }

    /// All channels in the order of their registration.
    var ordered: [ID] {
        let pairs = entries.map { ($1.order, $0) }
        return pairs.sorted { $0.0 < $1.0 }.map { $0.1 }
    }

    /// Channels whose subscription the server has not answered, in the order in which they were
    /// sent.
    var unanswered: [ID] {
        let sent = entries.filter { $1.state == .sent }
        return sent.sorted { ($0.1.sentAt, $0.1.order) < ($1.1.sentAt, $1.1.order) }.map { $0.0 }
    }

    /// - Parameter old: a cancelled channel of this name, whose answer it waits for.
    mutating func add(
        _ id: ID, _ name: PusherChannelName, _ registration: (any PusherRegistration)?,
        after old: ID? = nil
    ) {
        lastOrder += 1
        entries[id] = PusherChannelEntry(name: name, order: lastOrder, registration)
        guard let old else { return route(id) }
        entries[old]?.successor = id
        entries[id]?.predecessor = old
    }

    /// Removes a channel. If another one waits for that, it takes its place.
    mutating func remove(_ id: ID) -> PusherChannelEntry? {
        guard let entry = entries.removeValue(forKey: id) else { return nil }
        if let old = entry.predecessor {
            entries[old]?.successor = nil
        } else if let next = entry.successor {
            entries[next]?.predecessor = nil
            route(next)
        } else {
            routes[entry.name.text] = nil
        }
        return entry
    }

    /// Keeps the channel only until the server answers its subscription.
    mutating func cancel(_ id: ID) {
        guard let old = entries[id] else { return }
        entries[id] = PusherChannelEntry(cancelling: old)
        route(id)
    }

    mutating func addUser(_ name: String) { routes[name] = PusherChannels.userRoute }
    mutating func removeUser(_ name: String) { routes[name] = nil }

    private mutating func route(_ id: ID) {
        guard let entry = entries[id] else { return }
        routes[entry.name.text] = Route(
            id: id, isEncrypted: entry.name.kind == .encrypted, isCancelled: entry.isCancelled,
            registration: entry.registration)
    }
}

/// Subscriptions that were sent, in their order, and the time limit for their answers.
struct PusherUnanswered: Sendable {
    /// By name, because another registration may have taken its place meanwhile.
    private typealias Sent = (time: Instant, name: String)

    private var sent: [Sent] = []
    private var first = 0
    /// When the last pause ended, during which no answer was read.
    private var resumedAt = Instant(nanoseconds: 0)

    mutating func add(_ name: String, _ now: Instant) { sent.append((now, name)) }

    /// The time of a pause does not count.
    mutating func resumed(_ now: Instant) { resumedAt = now }

    /// When the oldest is due.
    mutating func due(_ channels: PusherChannels) -> Instant? {
        while first < sent.count, !isUnanswered(sent[first], channels) { first += 1 }
        if first > sent.count / 2 {
            sent.removeFirst(first)
            first = 0
        }
        guard first < sent.count else { return nil }
        return max(sent[first].time, resumedAt) + PusherConfiguration.answerTimeout
    }

    /// Removes one that is due.
    /// - Returns: its channel.
    mutating func popDue(_ channels: PusherChannels, _ now: Instant) -> PusherChannels.ID? {
        guard let due = due(channels), due <= now else { return nil }
        first += 1
        return channels[sent[first - 1].name]?.id
    }

    private func isUnanswered(_ one: Sent, _ channels: PusherChannels) -> Bool {
        guard let id = channels[one.name]?.id, let entry = channels[id] else { return false }
        return entry.state == .sent && entry.sentAt == one.time
    }
}
