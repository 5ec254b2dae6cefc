import Session
import Wire

/// Everything that defines one run, drawn before it starts.
struct DDPPlan {
    enum Deed {
        // The user's.
        case call(Call)
        case insert(String)
        case update(String)
        case remove(String)
        case subscribe(Publication, keep: Duration?)
        /// One of the handles, by chance.
        case release
        case stop
        case load([Publication])
        case closeLoader
        case logIn(String)
        case logOut
        case logOutOthers
        case observe(String, selector: String, options: String)
        case stopObserving
        case connect
        case reconnect
        case disconnect
        case background(Duration)
        case network(isReachable: Bool)
        // The server's, and the network's.
        case write(Int)
        case end(End)
        case offline(Duration)
        case garbage
        case duplicate
    }

    struct Call {
        var name: String
        var isWait = false
        var noRetry = false
        var throwsStubErrors = false
        var timeout = Duration.zero
    }

    struct Publication: Hashable {
        let name: String
        let collection: String
        /// A JSON text.
        let value: String

        var params: [EJSON] {
            [.string(collection), (try? EJSON(parsing: value)) ?? .null]
        }
    }

    /// How a connection ends.
    enum End {
        case close
        /// The client notices soon, the server perhaps later.
        case cut
        /// Nothing passes any more, and nobody notices.
        case stall
    }

    static let collections = ["tasks", "oids"]
    static let users = ["u1", "u2"]
    static let methods = [
        "add", "add", "addTwo", "edit", "edit", "drop", "pretend", "deny", "confused", "remote",
        "slow", "unknown",
    ]

    /// No faults: everything must arrive.
    let isGentle: Bool
    let configuration: DDPConfiguration
    let deeds: [(at: Duration, deed: Deed)]
    let first: [Publication]
    /// Nothing fails after this time.
    let peaceAt: Duration

    // The server.
    /// In its order of preference.
    let versions: [String]
    /// Keeps sessions.
    let resumes: Bool
    /// Begins with an object that is not a message.
    let greets: Bool
    let slowestMethod: Int
    /// How long the server collects changes before it sends them.
    let slowestRefresh: Int
    let slowestReady: Int
    /// How long the server needs to notice that a connection was cut.
    let slowestNotice: Int

    let tokenLife: Duration
    /// The user of a token that the client keeps from an earlier run, and whether it is good.
    let kept: (user: String, isGood: Bool)?

    // Of a hundred.
    /// Attempts that fail to open, and connections on which the server says nothing.
    let failing: Int
    let silent: Int
    /// Logins that are too many.
    let limited: Int
    /// Results that come before the documents.
    let resultFirst: Int
    /// Methods that let the next message pass.
    let unblocking: Int
    /// Writes that differ from what the client expects.
    let surprising: Int
    /// Connections that end by themselves, and the longest life of those.
    let short: Int
    let longestLife: Int
    let slowestLink: Int
    /// Callbacks in which the user acts at once.
    let hasty: Int
    /// New connections for which the user's handler makes calls.
    let greeting: Int
    /// How many steps of a flush are done at once; 0 for the usual number.
    let flushSteps: Int

    init(_ random: inout Random) {
        isGentle = random.chance(25)
        let gentle = isGentle
        func rate(_ choices: [Int]) -> Int {
            let drawn = random.pick(choices)
            return gentle ? 0 : drawn
        }
        resumes = random.chance(50)
        greets = random.chance(30)
        slowestMethod = random.pick([0, 50, 3000])
        slowestRefresh = random.pick([0, 20, 1000])
        slowestReady = random.pick([0, 100, 5000, 40_000])
        slowestNotice = random.pick([0, 200, 30_000])
        failing = rate([0, 10, 50])
        silent = rate([0, 0, 10])
        limited = rate([0, 0, 30])
        tokenLife = .seconds(random.pick([7_776_000, 7_776_000, 100]))
        let keeps = random.chance(20)
        kept = keeps ? (random.pick(DDPPlan.users), random.chance(70)) : nil
        resultFirst = random.pick([0, 50, 100])
        unblocking = random.pick([0, 30])
        surprising = random.pick([0, 40])
        short = rate([0, 50, 90])
        longestLife = random.pick([900, 6000, 90_000])
        slowestLink = random.pick([0, 5, 100, 1500])
        hasty = rate([0, 0, 4])
        let usual = ["1", "pre2", "pre1"]
        let versions = random.pick([usual, usual, ["pre2", "pre1"], ["pre1"]])
        self.versions = random.chance(3) ? ["9"] : versions
        configuration = DDPPlan.configuration(&random, gentle)
        peaceAt = .seconds(random.pick([30, 100, 400]))
        first = DDPPlan.publications(&random, random.within(0...3))
        deeds = DDPPlan.deeds(&random, isGentle: isGentle, until: peaceAt)
        greeting = [0, 0, 40, 100][deeds.count % 4]
        flushSteps = [0, 0, 1, 8, 30][deeds.count % 5]
    }

    /// The versions that the client offers.
    var offered: [String] {
        configuration.versions.isEmpty ? ["1", "pre2", "pre1"] : configuration.versions
    }

    /// The server and the client have no version in common.
    var cannotAgree: Bool { !versions.contains { offered.contains($0) } }

    private static func configuration(
        _ random: inout Random, _ isGentle: Bool
    ) -> DDPConfiguration {
        var configuration = DDPConfiguration()
        configuration.mayReconnect = isGentle || !random.chance(5)
        configuration.heartbeatInterval = .milliseconds(random.pick([17_500, 17_500, 5000, 0]))
        configuration.heartbeatTimeout = .seconds(random.pick([15, 6]))
        configuration.bufferInterval = .milliseconds(random.pick([5, 5, 0, 200]))
        configuration.quiescenceLimit = .seconds(random.pick([30, 30, 3]))
        configuration.unusedSubscriptionTime = .seconds(random.pick([180, 10, 0]))
        configuration.backgroundGrace = .seconds(random.pick([180, 3]))
        if random.chance(20) { configuration.versions = ["pre2", "1", "pre1"] }
        return configuration
    }

    static func publication(_ random: inout Random) -> Publication {
        let name = random.pick(["all", "all", "some", "some", "names", "mine", "brief", "refused"])
        let collection = random.pick(collections)
        let value = name == "some" ? "\(random.below(3))" : "null"
        return Publication(name: name, collection: collection, value: value)
    }

    private static func publications(_ random: inout Random, _ count: Int) -> [Publication] {
        (0..<count).map { _ in publication(&random) }
    }

    static func call(_ random: inout Random) -> Call {
        var call = Call(name: random.pick(methods))
        call.isWait = random.chance(12)
        call.noRetry = random.chance(15)
        call.throwsStubErrors = random.chance(10)
        if random.chance(8) { call.timeout = random.milliseconds(100...20_000) }
        return call
    }

    static func keep(_ random: inout Random) -> Duration? {
        random.pick([nil, nil, .zero, .seconds(2), .seconds(40)])
    }

    static func observation(_ random: inout Random) -> Deed {
        let selector = random.pick([
            "{}", #"{"kind":1}"#, #"{"n":{"$gt":40}}"#,
            #"{"$or":[{"kind":{"$in":[0,2]}},{"n":{"$lt":10}}]}"#,
        ])
        let options = random.pick([
            "{}", #"{"sort":{"n":1}}"#, #"{"sort":[["kind","desc"],"n"],"limit":3}"#,
            #"{"sort":{"n":-1},"skip":1,"limit":4}"#, #"{"fields":{"n":1}}"#,
        ])
        return .observe(random.pick(collections), selector: selector, options: options)
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
        func collection(_ random: inout Random) -> String { random.pick(collections) }
        add(random.within(3...25)) { .write($0.pick([1, 1, 3, 30])) }
        add(random.within(0...20)) { .call(call(&$0)) }
        add(random.within(0...5)) { .insert(collection(&$0)) }
        add(random.within(0...5)) { .update(collection(&$0)) }
        add(random.within(0...3)) { .remove(collection(&$0)) }
        add(random.within(0...8)) { .subscribe(publication(&$0), keep: keep(&$0)) }
        add(random.within(0...6)) { _ in .release }
        add(random.within(0...2)) { _ in .stop }
        add(random.pick([0, 1, 2])) { .load(publications(&$0, 2)) }
        add(random.pick([0, 1])) { _ in .closeLoader }
        add(random.within(0...3)) { observation(&$0) }
        add(random.pick([0, 1])) { _ in .stopObserving }
        add(random.pick([0, 0, 1, 3])) { .logIn($0.pick(users + ["nobody"])) }
        add(random.pick([0, 0, 1])) { _ in .logOut }
        add(random.pick([0, 0, 1])) { _ in .logOutOthers }
        // Several in one instant: they share a flight.
        if random.chance(50) {
            let time = random.milliseconds(0...limit)
            for _ in 0..<random.within(2...6) { deeds.append((time, .call(call(&random)))) }
        }
        add(random.pick([0, 4])) { _ in .garbage }
        add(random.pick([0, 4])) { _ in .duplicate }
        if isGentle { return deeds }
        add(random.pick([0, 2, 6])) { .end($0.pick([.close, .cut, .cut, .stall])) }
        add(random.pick([0, 0, 2])) { _ in .connect }
        add(random.pick([0, 0, 2])) { _ in .reconnect }
        add(random.pick([0, 0, 2])) { _ in .disconnect }
        add(random.pick([0, 0, 2])) { .background($0.milliseconds(0...60_000)) }
        add(random.pick([0, 0, 2])) { .offline($0.milliseconds(0...60_000)) }
        return deeds
    }
}
