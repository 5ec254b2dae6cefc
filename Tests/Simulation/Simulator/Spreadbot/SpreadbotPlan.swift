import Session
import Wire

enum SpreadbotNewTokens {
    case pair
    case access
    case same
}

/// Everything that defines one run: options, the server's behaviour, and the actions of the user
/// and the network, all drawn before it starts.
struct SpreadbotPlan {
    enum Deed {
        case publish(Int)
        case send([(kind: SpreadbotSend.Kind, isDurable: Bool)])
        /// Cancels a send of the user, whether or not it has ended.
        case cancel
        /// A request of the application is refused, and waits for tokens.
        case refusedRequest
        case establish(path: String)
        case disconnect
        /// Another pair, only another access token, or the same pair again.
        case setTokens(SpreadbotNewTokens)
        case pause(Duration)
        case offline(Duration)
        /// The server cannot be reached although there is a network.
        case outage(Duration)
        /// A change of the network that leaves it usable.
        case otherNetwork
        /// The server loses its history.
        case forget
    }

    /// No faults: everything must arrive, and no error may be reported.
    let isGentle: Bool
    let configuration: SpreadbotConfiguration
    let deeds: [(at: Duration, deed: Deed)]
    /// Sends left by an earlier run, and whether the first action is a post.
    let left: [SpreadbotSend.Kind]
    let postsFirst: Bool
    /// Nothing fails after this time.
    let peaceAt: Duration

    /// How many of a hundred attempts do not open.
    let failing: Int
    /// How many of a hundred open legs are cut, and how many of those stall before.
    let cut: Int
    let stalls: Int
    /// Of a hundred failures: those in which the leg does not work, the server refuses the client,
    /// or refuses a valid token. The others are temporary.
    let unfit: Int
    let refusing: Int
    let doubting: Int
    /// The longest time before a leg is cut.
    let longestLife: Int

    let takesTokens: Bool
    let rotates: Bool
    let tokenLife: Duration
    let tellsLife: Bool
    let closesAtExpiry: Bool
    /// Of a hundred refreshes.
    let refreshesLost: Int
    let refreshesRefused: Int

    let history: Int
    let beginsAtOldest: Bool
    let restartsCounter: Bool
    /// Of a hundred connections, those that start a little before the cursor.
    let repeats: Int
    /// Of a hundred messages, those without an id, which no history keeps.
    let bare: Int
    let postsFailing: Int
    /// Of a hundred callbacks, those in which the user acts at once.
    let hasty: Int

    init(_ random: inout Random) throws(RealtimeError) {
        isGentle = random.chance(25)
        let gentle = isGentle
        func rate(_ choices: [Int]) -> Int {
            let drawn = random.pick(choices)
            return gentle ? 0 : drawn
        }
        failing = rate([0, 10, 30, 60, 90])
        cut = rate([0, 30, 70, 100])
        stalls = rate([0, 30, 80])
        unfit = rate([0, 10, 40])
        refusing = rate([0, 0, 3])
        doubting = rate([0, 0, 5, 20])
        longestLife = random.pick([3000, 15_000, 90_000])
        takesTokens = random.chance(60)
        rotates = random.chance(60)
        let life = random.pick([3, 20, 45, 120, 3600])
        // A handshake may take longer than the shortest lifetime.
        tokenLife = .seconds(gentle ? max(life, 20) : life)
        tellsLife = random.chance(50)
        closesAtExpiry = rate([0, 1]) == 1
        refreshesLost = rate([0, 20, 60])
        refreshesRefused = rate([0, 0, 10, 60])
        history = random.pick([400, 400, 20])
        beginsAtOldest = random.chance(50)
        restartsCounter = rate([0, 0, 0, 1]) == 1
        repeats = rate([0, 30, 100])
        bare = rate([0, 0, 10])
        postsFailing = rate([0, 10, 50])
        hasty = rate([0, 0, 2])
        configuration = try SpreadbotPlan.configuration(&random, takesTokens, gentle)
        peaceAt = .seconds(random.pick([60, 300, 900]))
        let post = SpreadbotSend.Kind.request(path: "other", contentType: "text/plain")
        left = random.pick([[], [], [.text], [.text, post, .binary]])
        postsFirst = random.chance(20)
        deeds = SpreadbotPlan.deeds(&random, isGentle: isGentle, until: peaceAt)
    }

    private static func configuration(
        _ random: inout Random, _ takesTokens: Bool, _ isGentle: Bool
    ) throws(RealtimeError) -> SpreadbotConfiguration {
        var configuration = try SpreadbotConfiguration(base: "http://example.com/base")
        try configuration.setTransports(
            random.pick([
                [.webSocket, .sse, .poll], [.webSocket, .sse, .poll], [.webSocket, .sse, .poll],
                [.webSocket], [.poll], [.sse, .poll], [.webSocket, .poll], [.sse, .webSocket],
            ]))
        if takesTokens {
            try configuration.setAuthURL("https://example.com/token")
            let pairs = [("a0", "r0"), ("a0", "r0"), ("", "r0"), ("", "")]
            let (access, refresh) = random.pick(isGentle ? pairs.dropLast() : pairs)
            try configuration.setTokens(access: access, refresh: refresh)
        }
        if random.chance(15) {
            try configuration.setURL(of: .webSocket, "ws://other.example.com/x")
        }
        configuration.maxReconnects = random.pick([3, 3, 0, 1, 8])
        configuration.maxRounds = random.pick([1, 1, 0, 0, 2, 5])
        configuration.maxDelay = random.pick([.seconds(30), .seconds(3), .milliseconds(700)])
        configuration.stableTime = random.pick([.seconds(10), .seconds(2)])
        configuration.upgradeInterval = .seconds(random.pick([300, 20, 5, 0]))
        configuration.maxUpgradeInterval = .seconds(random.pick([3600, 40]))
        configuration.queueCapacity = random.pick([100, 5, 1])
        configuration.overflow = random.pick([.rejectNew, .dropOldest])
        return configuration
    }

    private static func deeds(
        _ random: inout Random, isGentle: Bool, until end: Duration
    ) -> [(at: Duration, deed: Deed)] {
        let limit = Int(end.components.seconds) * 1000
        var deeds: [(at: Duration, deed: Deed)] = []
        func add(_ count: Int, _ deed: (inout Random) -> Deed) {
            for _ in 0..<count {
                let time = random.milliseconds(0...limit)
                deeds.append((time, deed(&random)))
            }
        }
        func kind(_ random: inout Random) -> SpreadbotSend.Kind {
            switch random.below(6) {
            case 0: .request(path: "other", contentType: "text/plain")
            case 1, 2: .binary
            default: .text
            }
        }
        let durables = random.pick([0, 30, 100])
        add(random.within(2...25)) { .publish($0.pick([1, 1, 3, 10])) }
        add(random.within(0...12)) { random in
            let count = random.pick([1, 1, 1, 6])
            return .send((0..<count).map { _ in (kind(&random), random.chance(durables)) })
        }
        add(random.pick([0, 2]) * 2) { _ in .refusedRequest }
        add(random.pick([0, 2])) { .pause($0.milliseconds(0...20_000)) }
        if isGentle { return deeds }
        add(random.pick([0, 3])) { _ in .cancel }
        add(random.pick([0, 0, 3])) { _ in .disconnect }
        add(random.pick([0, 0, 3])) { .establish(path: $0.pick(["room", "room", "hall"])) }
        add(random.pick([0, 0, 3])) { .setTokens($0.pick([.pair, .access, .same])) }
        add(random.pick([0, 1, 4])) { .offline($0.milliseconds(0...90_000)) }
        add(random.pick([0, 0, 2])) { .outage($0.milliseconds(0...240_000)) }
        add(random.pick([0, 2])) { _ in .otherNetwork }
        add(random.pick([0, 0, 0, 1])) { _ in .forget }
        return deeds
    }
}
