import Wire

/// The requests to one origin.
struct RESTLine: Sendable {
    /// One of them, which stands for all.
    let url: HTTPURL
    /// There is a network to it.
    var isReachable: Bool
    /// It came back, and nothing is sent before this time (R11).
    var resumeAt: Instant?
    /// Exchanges under way.
    var running = 0
    /// Exchanges share connections (HTTP/2), so that `max_per_host` does not limit them.
    var isShared = false
    /// Connections that were made although there was one to share.
    var extraConnections = 0
    /// Requests of it that have not ended.
    var members = 0
    /// Unordered ones that wait to begin, first submitted first: those with the client's
    /// credential, which wait for a fresh one too, and the others.
    var waiting: [RESTSession.ID] = []
    var waitingWithoutCredential: [RESTSession.ID] = []
}

/// The lines there are, each at a place that it keeps while it has members. A few without are kept
/// for the requests that often follow.
struct RESTLines: Sendable {
    typealias Place = Int

    private var lines: [RESTLine] = []
    private var places: [String: Place] = [:]
    private var free: [Place] = []
    private static let most = 16

    /// Those in use.
    var all: some Collection<Place> { places.values }

    subscript(_ place: Place) -> RESTLine {
        get { lines[place] }
        _modify { yield &lines[place] }
    }

    /// Makes a request to `url` a member of its line.
    /// - Parameter isReachable: asked for a line that is new.
    mutating func enter(_ url: HTTPURL, isReachable: () -> Bool) -> Place {
        if let place = places[url.origin] {
            lines[place].members += 1
            return place
        }
        let line = RESTLine(url: url, isReachable: isReachable(), members: 1)
        let place = free.popLast() ?? lines.count
        if place == lines.count { lines.append(line) } else { lines[place] = line }
        places[url.origin] = place
        return place
    }

    mutating func leave(_ place: Place) {
        lines[place].members -= 1
        guard lines[place].members == 0, places.count > RESTLines.most else { return }
        places[lines[place].url.origin] = nil
        free.append(place)
    }
}
