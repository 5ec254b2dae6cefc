import Session

/// Checks how often a server is asked, whatever it answers: so many requests at once and so many a
/// second, counted in windows of several lengths.
struct RequestCeiling {
    private let world: World
    private let burst: Int
    private let perSecond: Int
    private var times: [Instant] = []
    /// The length of each window in seconds, and where it starts in `times`.
    private var windows = [(1, 0), (10, 0), (60, 0), (600, 0)]

    /// An attempt's redirects, also when repeated with credentials, do not wait.
    private static let requestsOfAnAttempt = 2 * 21

    /// The ceilings of event sources and long polls (C9, L5).
    static func ofEventSource(_ world: World) -> RequestCeiling {
        RequestCeiling(world, burst: 50, perSecond: 4)
    }
    static func ofLongPoll(_ world: World) -> RequestCeiling {
        RequestCeiling(world, burst: 1000, perSecond: 100)
    }

    private init(_ world: World, burst: Int, perSecond: Int) {
        self.world = world
        self.burst = burst
        self.perSecond = perSecond
    }

    /// A request goes out now.
    mutating func asked() {
        times.append(world.now)
        for (index, (seconds, first)) in windows.enumerated() {
            var first = first
            while times[first] + .seconds(seconds) <= world.now { first += 1 }
            windows[index].1 = first
            let count = times.count - first
            let most = burst + seconds * perSecond + RequestCeiling.requestsOfAnAttempt
            world.require(
                count <= most, "\(count) requests in \(seconds) s, the ceiling is \(most)")
        }
    }

    /// Whether the ceiling may delay an attempt.
    var mayDelay: Bool {
        let refill = Duration.seconds(burst / perSecond + 1)
        return times.count >= burst && times[times.count - burst] + refill > world.now
    }
}
