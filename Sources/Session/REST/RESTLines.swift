import Wire

/// The requests to one origin.
struct RESTLine: Sendable {
    /// The URL of one of its requests, which represents the origin.
    let url: HTTPURL
    /// Whether there is a network to reach the origin.
    var isReachable: Bool
    /// The network returned, and no request is sent before this time (R11).
    var resumeAt: Instant?
    /// Exchanges in progress.
    var running = 0
    /// Whether exchanges share connections (HTTP/2). Then `max_per_host` does not limit them.
    var isShared = false
    /// Connections that were made although one could be shared.
    var extraConnections = 0
    /// Requests that have not ended.
    var members = 0
    /// Unordered requests that wait to begin, in the order of submission: those with the client's
    /// credential, which may also wait for a fresh one, and the others.
    var waiting: [RESTSession.ID] = []
    var waitingWithoutCredential: [RESTSession.ID] = []
}

/// All lines. The index of a line stays the same while it has members. A few lines without members
/// are kept, because requests to the same origin often follow.
struct RESTLines: Sendable {
    typealias Index = Int

    private var lines: [RESTLine] = []
    private var indices: [ByteText: Index] = [:]
    private var free: [Index] = []
    private static let most = 16

    /// The indices of the lines in use.
    var all: some Collection<Index> { indices.values }

    subscript(_ index: Index) -> RESTLine {
        get { lines[index] }
        _modify { yield &lines[index] }
    }

    /// Adds a request to the line of its URL's origin.
    /// - Parameter isReachable: called for a new line.
    mutating func enter(_ url: HTTPURL, isReachable: () -> Bool) -> Index {
        if let index = indices[ByteText(url.origin)] {
            lines[index].members += 1
            return index
        }
        let line = RESTLine(url: url, isReachable: isReachable(), members: 1)
        let index = free.popLast() ?? lines.count
        if index == lines.count { lines.append(line) } else { lines[index] = line }
        indices[ByteText(url.origin)] = index
        return index
    }

    mutating func leave(_ index: Index) {
        lines[index].members -= 1
        guard lines[index].members == 0, indices.count > RESTLines.most else { return }
        indices[ByteText(lines[index].url.origin)] = nil
        free.append(index)
    }
}
