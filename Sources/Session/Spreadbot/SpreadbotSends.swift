/// What is to be sent, whichever way it goes.
package struct SpreadbotSend: Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        case text
        case binary
        /// A POST to a path of its own, whatever leg is there.
        case request(path: String, contentType: String)
    }

    /// In the order of submission, from 1; given by the session.
    package typealias ID = UInt64

    package internal(set) var id: ID = 0
    /// What its sender knows it by.
    package let number: UInt64
    package let kind: Kind
    package let payload: [UInt8]
    /// Of a message that belongs to one path, whatever is established when it goes out; nil for
    /// one that goes wherever the connection is.
    package let path: String?
    /// The Idempotency-Key of each attempt that is a POST.
    package let key: String
    /// Its place in the durable outbox; nil for one that does not outlive the process.
    package let entry: UInt64?
    /// Its sender was told that it is done: written, in a pause, and still in the outbox.
    package internal(set) var isTold = false

    package init(
        number: UInt64, kind: Kind, payload: [UInt8], path: String? = nil, key: String,
        entry: UInt64? = nil
    ) {
        self.number = number
        self.kind = kind
        self.payload = payload
        self.path = path
        self.key = key
        self.entry = entry
    }

    /// It is sent until the server has it, whatever connections are lost on the way.
    package var isDurable: Bool { entry != nil }
    /// A message that goes wherever the connection is.
    var isBoundToConnection: Bool { isMessage && path == nil }
    package var isMessage: Bool { kind == .text || kind == .binary }

    /// Whether it can go out as a frame of a WebSocket to this path.
    func isFrame(on path: String) -> Bool { isMessage && (self.path ?? path) == path }

    /// What it counts for: one without a byte needs memory too.
    var cost: Int { payload.count + 64 }
}

/// The sends of a session, in one order for both ways out (docs/spreadbot.md, B14): frames of a
/// WebSocket, many at a time, or requests, one at a time.
///
/// A frame is done when the server has answered a ping that followed it (RFC 6455 §5.5.3: frames
/// are handled in order). One that was written to a connection which was then lost may have arrived
/// or not: its sender is told so, unless it is durable and therefore sent again.
struct SpreadbotSends: Sendable {
    typealias ID = SpreadbotSend.ID

    private var lastID: ID = 0
    /// Neither written nor posted, in order.
    private var waiting: [SpreadbotSend] = []
    private var firstWaiting = 0
    /// Frames given to the WebSocket, in order, and not confirmed.
    private var flying: [SpreadbotSend] = []
    private var flyingBytes = 0
    private(set) var posting: SpreadbotSend?
    /// A ping is under way that follows the frames up to this one.
    private var confirming: ID?

    /// Of frames that are not confirmed; more of them wait.
    private static let mostFlyingBytes = 8 << 20

    var waitingCount: Int { waiting.count - firstWaiting }
    var hasFlying: Bool { !flying.isEmpty }
    var oldestWaiting: SpreadbotSend? { waitingCount > 0 ? waiting[firstWaiting] : nil }

    mutating func append(_ send: SpreadbotSend) {
        lastID += 1
        waiting.append(send)
        waiting[waiting.count - 1].id = lastID
    }

    private mutating func takeFirst() -> SpreadbotSend? {
        guard firstWaiting < waiting.count else { return nil }
        let send = waiting[firstWaiting]
        firstWaiting += 1
        if firstWaiting == waiting.count {
            waiting.removeAll(keepingCapacity: waiting.count <= 1024)
            firstWaiting = 0
        } else if firstWaiting >= 1024 {
            waiting.removeFirst(firstWaiting)
            firstWaiting = 0
        }
        return send
    }

    /// The next frame that an open WebSocket to this path may be given.
    mutating func nextFrame(on path: String) -> SpreadbotSend? {
        guard posting == nil, let first = oldestWaiting, first.isFrame(on: path),
            flying.isEmpty || flyingBytes + first.cost <= SpreadbotSends.mostFlyingBytes
        else { return nil }
        guard let send = takeFirst() else { return nil }
        flying.append(send)
        flyingBytes += send.cost
        return send
    }

    /// The next request, once nothing before it is under way.
    /// - Parameters:
    ///   - isWanted: which one goes this way.
    ///   - passes: one that is wanted goes before those that are not.
    mutating func nextRequest(
        passes: Bool, where isWanted: (SpreadbotSend) -> Bool
    ) -> SpreadbotSend? {
        guard posting == nil, flying.isEmpty, let first = oldestWaiting else { return nil }
        if isWanted(first) {
            posting = takeFirst()
        } else if passes, let index = waiting[firstWaiting...].firstIndex(where: isWanted) {
            posting = waiting.remove(at: index)
        }
        return posting
    }

    /// - Returns: the frame that a ping is to be sent behind; nil while one is under way, or when
    ///   there is none.
    mutating func nextConfirmation() -> ID? {
        guard confirming == nil, let last = flying.last else { return nil }
        confirming = last.id
        return last.id
    }

    /// The server has all frames up to this one.
    mutating func confirmed(_ id: ID) -> [SpreadbotSend] {
        confirming = nil
        let count = flying.prefix { $0.id <= id }.count
        return removeFlying(count)
    }

    /// The frames up to this one are written, and no answer will be read for a while.
    /// - Returns: those whose senders are told so. What is durable is kept until the server has it.
    mutating func written(_ id: ID) -> [SpreadbotSend] {
        let count = flying.prefix { $0.id <= id }.count
        let told = flying[..<count].filter { !$0.isTold }
        var kept = removeFlying(count).filter { $0.isDurable }
        for index in kept.indices { kept[index].isTold = true }
        flyingBytes += kept.reduce(0) { $0 + $1.cost }
        flying = kept + flying
        return told.map { send in
            var send = send
            send.isTold = send.isDurable
            return send
        }
    }

    /// The WebSocket is gone.
    /// - Parameter written: the last frame that was written whole; 0 for none.
    /// - Returns: those that may have arrived. The others wait again, before all that do.
    mutating func dropped(written: ID) -> [SpreadbotSend] {
        confirming = nil
        let all = removeFlying(flying.count)
        waiting = all.filter { $0.id > written || $0.isDurable } + takeWaiting()
        return all.filter { $0.id <= written && !$0.isDurable }
    }

    private mutating func removeFlying(_ count: Int) -> [SpreadbotSend] {
        let gone = Array(flying.prefix(count))
        flying.removeFirst(count)
        flyingBytes -= gone.reduce(0) { $0 + $1.cost }
        return gone
    }

    private mutating func takeWaiting() -> [SpreadbotSend] {
        let all = Array(waiting[firstWaiting...])
        waiting = []
        firstWaiting = 0
        return all
    }

    /// The request is over.
    mutating func posted() -> SpreadbotSend? {
        defer { posting = nil }
        return posting
    }

    /// The request is over, and comes again before all others.
    mutating func postAgain() {
        waiting = [posting].compactMap { $0 } + takeWaiting()
        posting = nil
    }

    /// The one that has waited longest makes room.
    mutating func dropOldest() -> SpreadbotSend? {
        // Those that are durable have a file for a queue.
        guard let index = waiting[firstWaiting...].firstIndex(where: { !$0.isDurable }) else {
            return nil
        }
        return index == firstWaiting ? takeFirst() : waiting.remove(at: index)
    }

    mutating func dropNewest() -> SpreadbotSend? {
        guard waitingCount > 0, waiting.last?.isDurable == false else { return nil }
        return waiting.popLast()
    }

    /// Gives up messages that have not begun, and one that is being posted.
    /// - Returns: those given up, in order. What is durable stays, and so do frames and requests.
    mutating func closeWaiting() -> [SpreadbotSend] {
        close {
            $0.isMessage
        } given: {
            $0.isMessage
        }
    }

    /// The same for messages that would go to whatever path is established next.
    mutating func closeMessages() -> [SpreadbotSend] {
        close {
            $0.isBoundToConnection
        } given: {
            $0.isBoundToConnection
        }
    }

    /// - Parameters:
    ///   - isInterrupted: whether a request under way of this kind is.
    ///   - isGiven: up, when it is not durable.
    private mutating func close(
        _ isInterrupted: (SpreadbotSend) -> Bool, given isGiven: (SpreadbotSend) -> Bool
    ) -> [SpreadbotSend] {
        let interrupted = posting.flatMap { isInterrupted($0) ? $0 : nil }
        if interrupted != nil { posting = nil }
        let all = [interrupted].compactMap { $0 } + takeWaiting()
        waiting = all.filter { $0.isDurable || !isGiven($0) }
        return all.filter { !$0.isDurable && isGiven($0) }
    }

    /// The same with frames: there is no connection any more.
    mutating func close() -> [SpreadbotSend] {
        confirming = nil
        let frames = removeFlying(flying.count)
        waiting = frames + takeWaiting()
        return closeWaiting()
    }

    mutating func cancel(_ number: UInt64) -> SpreadbotSend? {
        guard let index = waiting[firstWaiting...].firstIndex(where: { $0.number == number })
        else {
            return nil
        }
        return waiting.remove(at: index)
    }
}
