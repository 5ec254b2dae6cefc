import Wire

// When each request begins (R10, R11).
extension RESTSession {
    /// How many exchanges with one origin may share connections: the number of streams that a
    /// server should allow on one (RFC 9113 §6.5.2), and that libcurl uses.
    private var mostStreams: Int { 100 }

    /// Learns from a response how the connections of an origin are used.
    /// - Parameters:
    ///   - isShared: other exchanges may use the connection at the same time.
    ///   - isNew: the connection was made for this exchange.
    mutating func learn(_ entry: RESTEntry, isShared: Bool, isNew: Bool, _ now: Instant) {
        let line = entry.line
        let wasShared = lines[line].isShared
        if lines[line].running <= 1 { lines[line].extraConnections = 0 }
        if isShared, isNew, wasShared, lines[line].running > 1 {
            // The server allows few streams per connection: `max_per_host` counts connections.
            lines[line].extraConnections += 1
        }
        lines[line].isShared = isShared && lines[line].extraConnections < perHost
        if lines[line].isShared, !wasShared { pump(line, now) }
    }

    /// Queues a request again, in its order among the others, and begins what may begin.
    mutating func requeue(_ entry: RESTEntry, _ now: Instant) {
        if entry.hasExchange { lines[entry.line].running -= 1 }
        enqueue(entry)
        noteWait(entry)
        alarms.set(entry.id, due: entry.alarm)
        pump(entry.line, now)
    }

    mutating func enqueue(_ entry: RESTEntry) {
        entry.state = .queued
        if entry.isOrdered { return }
        if entry.usesCredential {
            lines[entry.line].waiting.insert(sorted: entry.id)
        } else {
            lines[entry.line].waitingWithoutCredential.insert(sorted: entry.id)
        }
    }

    /// Begins requests: those of this line, and the first ordered one, whatever its line is.
    mutating func pump(_ line: RESTLines.Index, _ now: Instant) {
        // If a request ends when it should begin, do not recurse: there may be thousands.
        guard !isPumping else { return }
        isPumping = true
        while let id = next(line, now) ?? nextOrdered(now) { begin(id, now) }
        isPumping = false
    }

    /// The first ordered request, if it may begin.
    private func nextOrdered(_ now: Instant) -> ID? {
        guard let first = ordered.first, let entry = entries[first],
            next(entry.line, now) == first
        else { return nil }
        return first
    }

    private func next(_ line: RESTLines.Index, _ now: Instant) -> ID? {
        guard lines[line].isReachable, lines[line].resumeAt.map({ $0 <= now }) ?? true,
            lines[line].running < (lines[line].isShared ? max(perHost, mostStreams) : perHost)
        else { return nil }
        let plain = nextUnordered(line)
        guard let first = ordered.first, let entry = entries[first], entry.line == line,
            entry.isQueued, !awaitsCredential(entry)
        else { return plain }
        return min(plain ?? first, first)
    }

    private func nextUnordered(_ line: RESTLines.Index) -> ID? {
        let other = lines[line].waitingWithoutCredential.first
        let waiting = lines[line].waiting
        let index = waiting.firstIndex(after: (lastBeforeQuestion ?? 0) + 1)
        guard index < waiting.count else { return other }
        return min(other ?? waiting[index], waiting[index])
    }

    /// Whether the request waits for a fresh credential. Requests submitted after the question do
    /// not wait: they may be the ones that fetch it.
    func awaitsCredential(_ entry: RESTEntry) -> Bool {
        guard let lastBeforeQuestion, entry.usesCredential else { return false }
        return entry.id <= lastBeforeQuestion
    }

    private mutating func begin(_ id: ID, _ now: Instant) {
        guard let entry = entries[id] else { return }
        if let deadline = entry.deadline, deadline <= now {
            return finish(entry, passed(entry), now: now)
        }
        leaveQueue(entry)
        lines[entry.line].running += 1
        entry.waitsForNetwork = false
        entry.attemptEnd = nil
        start(entry, now)
    }

    /// Begins an exchange of a request that has left the queue.
    mutating func start(_ entry: RESTEntry, _ now: Instant) {
        entry.exchangeCounts = !entry.isReplay
        if entry.exchangeCounts { entry.attempts += 1 }
        entry.isReplay = false
        entry.isTimedOut = false
        if entry.attemptEnd == nil, entry.policy.attemptTimeout > .zero {
            entry.attemptEnd = now + entry.policy.attemptTimeout
            entry.movedAt = nil
        }
        entry.isHeld = false
        entry.hasCome = false
        if entry.usesCredential {
            entry.generation = generation
            if credential != nil || entry.request.has("Authorization") {
                entry.request.set("Authorization", credential)
            }
            if let (name, token) = tokenQuery {
                entry.request.url = entry.request.url.withQuery(name, token)
            }
        }
        let rewinds = entry.bodyIsUsed
        entry.bodyIsUsed = false
        let isFresh = entry.needsFreshConnection || entry.policy.usesFreshConnection
        entry.needsFreshConnection = false
        entry.head = nil
        entry.retryAfter = nil
        entry.state = .running(isAnswered: false)
        alarms.set(entry.id, due: entry.alarm)
        act(.start(entry.id, entry.request, isFresh: isFresh, rewinds: rewinds))
    }

    private mutating func leaveQueue(_ entry: RESTEntry) {
        counted.remove(sorted: entry.id)
        guard entry.isQueued, !entry.isOrdered else { return }
        lines[entry.line].waiting.remove(sorted: entry.id)
        lines[entry.line].waitingWithoutCredential.remove(sorted: entry.id)
    }

    /// Ends a request, and begins requests that waited for its end.
    mutating func finish(
        _ entry: RESTEntry, _ error: RealtimeError?, hasBody: Bool = false, now: Instant
    ) {
        guard entries.removeValue(forKey: entry.id) != nil else { return }
        alarms.remove(entry.id)
        leaveQueue(entry)
        if entry.isOrdered { ordered.remove(sorted: entry.id) }
        if entry.hasExchange { lines[entry.line].running -= 1 }
        let error = error.map { secrets(of: entry).redacted($0) }
        act(.finish(entry.id, entry.outcome(error, hasBody: hasBody)))
        pump(entry.line, now)
        lines.leave(entry.line)
    }
}

extension [RESTSession.ID] {
    /// Where an id belongs in a sorted array.
    fileprivate func firstIndex(after id: Element) -> Int {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if self[middle] < id { low = middle + 1 } else { high = middle }
        }
        return low
    }

    fileprivate mutating func insert(sorted id: Element) { insert(id, at: firstIndex(after: id)) }

    fileprivate mutating func remove(sorted id: Element) {
        let index = firstIndex(after: id)
        if index < count, self[index] == id { remove(at: index) }
    }
}
