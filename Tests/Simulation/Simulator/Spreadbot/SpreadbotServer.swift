import Session

/// The server of a Spreadbot connection: messages with ids, of which it keeps some; tokens that
/// expire and rotate; and the sends that it received.
final class SpreadbotServer {
    struct Message {
        /// In the order of publication, from 0.
        let place: Int
        /// nil for a message that is only sent to connected clients.
        let id: String?
    }

    private let world: World
    private let plan: SpreadbotPlan
    private var random: Random
    private var counter = 0
    /// All messages that have an id.
    private(set) var messages: [Message] = []
    /// The oldest message that is still kept.
    private var first = 0
    /// Whether it has started its ids over: an id no longer identifies a message.
    private(set) var isAmbiguous = false

    /// When each access token expires.
    private var access: [String: Instant] = [:]
    private var refresh: Set<String> = []
    private var tokenCount = 0

    private(set) var received: [UInt64] = []
    private var keys: Set<String> = []

    init(_ world: World, _ plan: SpreadbotPlan) {
        self.world = world
        self.plan = plan
        random = world.random.split()
        access["a0"] = world.now + plan.tokenLife
        refresh = [plan.configuration.refreshToken]
    }

    // MARK: Messages

    /// - Returns: a message for connected clients only, which is not kept; nil otherwise.
    func publish() -> Message? {
        if random.chance(plan.bare) { return Message(place: -1, id: nil) }
        return publishKept()
    }

    func publishKept() -> Message? {
        counter += 1
        messages.append(Message(place: messages.count, id: String(counter)))
        first = max(first, messages.count - plan.history)
        return nil
    }

    func forget() {
        first = messages.count
        guard plan.restartsCounter else { return }
        counter = 0
        isAmbiguous = true
    }

    /// Changes to another path, which has no messages of the old one.
    func change() { first = messages.count }

    /// Where a connection starts, and the place before which the server cannot know anything.
    func start(_ cursor: String) -> (next: Int, floor: Int) {
        if cursor.isEmpty { return (plan.beginsAtOldest ? first : messages.count, first) }
        guard let last = messages[first...].lastIndex(where: { $0.id == cursor }) else {
            return (first, first)
        }
        let back = random.chance(plan.repeats) ? random.within(1...6) : 0
        let next = max(first, last + 1 - back)
        return (next, isAmbiguous ? next : first)
    }

    // MARK: Tokens

    func takes(_ token: String) -> Bool {
        !plan.takesTokens || access[token].map { $0 > world.now } ?? false
    }

    /// When an open connection with this token has to end.
    func expiry(_ token: String) -> Instant? {
        plan.takesTokens && plan.closesAtExpiry ? access[token] : nil
    }

    /// Issues only another access token.
    func issue() -> String {
        tokenCount += 1
        access["a\(tokenCount)"] = world.now + plan.tokenLife
        return "a\(tokenCount)"
    }

    /// The user has signed in again.
    func signIn() -> (access: String, refresh: String) {
        tokenCount += 1
        let pair = ("a\(tokenCount)", "r\(tokenCount)")
        access[pair.0] = world.now + plan.tokenLife
        refresh.insert(pair.1)
        return pair
    }

    /// - Returns: nil for an unknown or used refresh token.
    func spend(_ token: String) -> (access: String, refresh: String?)? {
        guard !token.isEmpty, refresh.contains(token) else { return nil }
        let pair = signIn()
        guard plan.rotates else {
            refresh.remove(pair.refresh)
            return (pair.access, nil)
        }
        refresh.remove(token)
        return pair
    }

    // MARK: What it is sent

    func receive(_ send: SpreadbotSend, isFrame: Bool) {
        // The key identifies a repeated request.
        guard isFrame || keys.insert(send.key).inserted else { return }
        received.append(send.number)
    }
}
