import Session
import Wire

/// How servers differ.
enum PusherDialect: CaseIterable {
    case pusher, soketi, reverb, sockudo, fake

    /// The activity timeout that the server asks for, in seconds.
    var activityTimeout: Int? {
        switch self {
        case .pusher, .sockudo: 120
        case .soketi, .reverb: 30
        case .fake: nil
        }
    }

    /// The server asks for signs of life by `pusher:ping`, and ends connections that give none.
    var pings: Bool { self == .reverb || self == .sockudo }
    var knowsUsers: Bool { self != .reverb && self != .fake }
}

/// Everything that defines one run, drawn before it starts.
struct PusherPlan {
    enum Deed {
        /// Events on channels of the server, in one burst.
        case publish(Int)
        case subscribe(String)
        case unsubscribe(String)
        case trigger(String, Int)
        case signIn
        case signOut
        /// Signs out, and another user in.
        case changeUser
        case connect
        case disconnect
        case memberComes(String)
        case memberGoes(String)
        case rotateKey(String)
        case end(End)
        case offline(Duration)
        case reportNetwork(Bool)
        case pause(Duration)
        /// A message that means nothing.
        case garbage
        case setRetries(Int?, Duration?)
    }

    /// How the server, or the network, ends a connection.
    enum End {
        /// An error event before, with this code.
        case close(UInt16?, error: Int?)
        case cut
        /// Nothing passes any more.
        case stall
    }

    static let users = ["me", "other"]
    static let channels = [
        "chat", "cache-news", "private-a", "private-b", "presence-c", "presence-d",
        "private-encrypted-e", "private-encrypted-f",
    ]
    static let codes: [UInt16?] = [
        nil, 1000, 1001, 1011, 4000, 4001, 4009, 4100, 4199, 4200, 4200, 4201, 4202, 4300, 4999,
    ]

    /// No faults: everything must arrive.
    let isGentle: Bool
    let dialect: PusherDialect
    let configuration: PusherConfiguration
    let deeds: [(at: Duration, deed: Deed)]
    let first: [String]
    /// Nothing fails after this time.
    let peaceAt: Duration

    // Of a hundred.
    /// Attempts that fail to open, that the server refuses, or that it never confirms.
    let failing: Int
    let refusing: Int
    let silent: Int
    /// Authorizations that fail, and those that the server refuses.
    let authFailing: Int
    let authBad: Int
    /// Authorizations of presence channels that leave the user to the sign-in.
    let authBare: Int
    /// Cancelled requests that are answered all the same.
    let authLate: Int
    let slowestAuth: Int
    /// Sign-ins that the server answers late.
    let lateSignIns: Int
    let slowestLink: Int
    /// Connections that end by themselves, and the longest life of those.
    let short: Int
    let longestLife: Int
    /// Callbacks in which the user acts at once.
    let hasty: Int
    /// Messages after which the driver does not act before the next one.
    let lazy: Int

    init(_ random: inout Random) throws(RealtimeError) {
        isGentle = random.chance(25)
        let gentle = isGentle
        func rate(_ choices: [Int]) -> Int {
            let drawn = random.pick(choices)
            return gentle ? 0 : drawn
        }
        dialect = random.pick(PusherDialect.allCases)
        failing = rate([0, 10, 50, 90])
        refusing = rate([0, 0, 5])
        silent = rate([0, 0, 10])
        authFailing = rate([0, 20, 60])
        authBad = rate([0, 10, 40])
        authBare = rate([0, 30])
        authLate = rate([0, 50])
        lateSignIns = rate([0, 40])
        slowestAuth = random.pick([10, 300, 20_000])
        slowestLink = random.pick([5, 100, 2000])
        short = rate([0, 30, 80])
        longestLife = random.pick([900, 6000, 90_000])
        hasty = rate([0, 0, 3])
        lazy = random.pick([0, 20])
        configuration = try PusherPlan.configuration(&random, gentle, dialect)
        peaceAt = .seconds(random.pick([30, 200, 900]))
        first = PusherPlan.channels.filter { _ in random.chance(50) }
        deeds =
            PusherPlan.deeds(&random, isGentle: isGentle, until: peaceAt)
            + PusherPlan.renewals(random, until: peaceAt)
    }

    private static func configuration(
        _ random: inout Random, _ isGentle: Bool, _ dialect: PusherDialect
    ) throws(RealtimeError) -> PusherConfiguration {
        var configuration = try PusherConfiguration(key: "KEY")
        configuration.usesTLS = random.chance(50)
        configuration.upgradesOn4000 = random.chance(50)
        configuration.activityTimeout = .seconds(random.pick([0, 0, 5, 200]))
        configuration.pongTimeout = .seconds(random.pick([30, 10]))
        configuration.usesFramePings = dialect == .pusher && random.chance(30)
        configuration.autoReconnect = isGentle || !random.chance(5)
        configuration.reconnectAttemptsMax = isGentle ? nil : random.pick([nil, nil, 0, 2])
        configuration.maxReconnectGap = random.pick([.seconds(120), .seconds(3), nil])
        configuration.authRetries = random.pick([0, 2])
        configuration.authBatchSize = random.pick([1, 3, 100])
        configuration.clientEventQueue = random.pick([100, 100, 2])
        configuration.clientEventRate = random.pick([0, 0, 3])
        return configuration
    }

    /// Channels that are subscribed, unsubscribed, and subscribed again soon.
    /// - Parameter random: a copy, so that the other draws stay the same.
    private static func renewals(
        _ random: Random, until end: Duration
    ) -> [(at: Duration, deed: Deed)] {
        var random = random
        let limit = Int(end.components.seconds) * 1000
        var deeds: [(at: Duration, deed: Deed)] = []
        for _ in 0..<random.pick([0, 2, 8]) {
            let channel = random.pick(channels)
            var time = random.milliseconds(0...limit)
            deeds.append((time, .subscribe(channel)))
            for _ in 0..<random.within(1...3) {
                let longest = random.pick([0, 100, 5000])
                time = time + random.milliseconds(0...longest)
                deeds.append((time, .unsubscribe(channel)))
                time = time + random.milliseconds(0...longest)
                deeds.append((time, .subscribe(channel)))
            }
        }
        return deeds
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
        func channel(_ random: inout Random) -> String { random.pick(channels) }
        add(random.within(5...40)) { .publish($0.pick([1, 1, 5, 20])) }
        add(random.within(0...15)) { .subscribe(channel(&$0)) }
        add(random.within(0...10)) { .unsubscribe(channel(&$0)) }
        add(random.within(0...15)) { .trigger(channel(&$0), $0.pick([1, 1, 4])) }
        add(random.within(0...10)) { .memberComes($0.pick(["presence-c", "presence-d"])) }
        add(random.within(0...10)) { .memberGoes($0.pick(["presence-c", "presence-d"])) }
        add(random.pick([0, 1, 2])) { _ in .signIn }
        add(random.pick([0, 0, 1])) { _ in .signOut }
        add(random.pick([0, 1, 4])) { _ in .changeUser }
        add(random.pick([0, 5])) { _ in .garbage }
        // The server waits 30 s for the answer to a ping.
        let longestPause = isGentle ? 10_000 : 60_000
        add(random.pick([0, 1])) { .pause($0.milliseconds(0...longestPause)) }
        if isGentle { return deeds }
        add(random.pick([0, 3, 8])) { .rotateKey(channels[$0.within(6...7)]) }
        add(random.pick([0, 2, 6])) { random in
            switch random.below(5) {
            case 0: .end(.cut)
            case 1: .end(.stall)
            default:
                .end(
                    .close(
                        random.pick(codes),
                        error: random.chance(30) ? random.pick([4001, 4009, 4100, 4201]) : nil))
            }
        }
        add(random.pick([0, 0, 3])) { _ in .connect }
        add(random.pick([0, 0, 3])) { _ in .disconnect }
        add(random.pick([0, 1, 3])) { .offline($0.milliseconds(0...90_000)) }
        add(random.pick([0, 2])) { .reportNetwork($0.chance(50)) }
        add(random.pick([0, 0, 1])) {
            .setRetries($0.pick([nil, 1]), $0.pick([nil, .seconds(10)]))
        }
        return deeds
    }
}
