import Wire

/// A message or request to send, independent of the transport.
package struct SpreadbotSend: Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        case text
        case binary
        /// A POST to its own path, whatever leg is in use.
        case request(path: String, contentType: String)
    }

    /// Ids increase from 1 in the order of submission. The session assigns them.
    package typealias ID = UInt64

    package internal(set) var id: ID = 0
    /// The number by which its sender knows it.
    package let number: UInt64
    package let kind: Kind
    package let payload: [UInt8]
    /// The path of a message that belongs to one path only; nil for a message that goes to the path
    /// of the connection.
    package let path: String?
    /// The Idempotency-Key for each POST of this send.
    package let key: String
    /// The id of its entry in the durable outbox; nil for a send that ends with the process.
    package let entry: UInt64?
    /// Its success was already reported: the frame was written during a pause, but is still in the
    /// outbox.
    package internal(set) var isReported = false

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

    /// Whether it is sent until the server has it, even if connections are lost.
    package var isDurable: Bool { entry != nil }
    /// Whether it is a message that goes to the path of the connection.
    var isBoundToConnection: Bool { isMessage && path == nil }
    package var isMessage: Bool { kind == .text || kind == .binary }

    /// Whether it can be sent as a frame of a WebSocket to this path.
    func isFrame(on path: String) -> Bool {
        isMessage && self.path?.hasSameBytes(as: path) ?? true
    }

    /// Its memory for limits. A send without bytes needs memory, too.
    var cost: Int { payload.count + 64 }
}

/// The sends of a session, in one order for both transports (docs/spreadbot.md, B14): frames of a
/// WebSocket, many at a time, or requests, one at a time.
///
/// A frame is confirmed when the server has answered a ping that followed it (RFC 6455 §5.5.3:
/// frames are handled in order). If the connection is lost after a frame was written, it may have
/// arrived or not. Its sender gets this as an error, unless the send is durable and is therefore
/// repeated.
struct SpreadbotSends: Sendable {
    typealias ID = SpreadbotSend.ID

    private var lastID: ID = 0
    /// Sends that are neither written nor posted, in order.
    private var waiting: [SpreadbotSend] = []
    private var firstWaiting = 0
    /// Frames that the WebSocket has taken but that are not confirmed, in order.
    private var inFlight: [SpreadbotSend] = []
    private var inFlightBytes = 0
    private(set) var posting: SpreadbotSend?
    /// The last frame before the ping in progress.
    private var confirming: ID?

    /// The most bytes of unconfirmed frames; further frames wait.
    private static let mostInFlightBytes = 8 << 20

    var waitingCount: Int { waiting.count - firstWaiting }
    var hasFramesInFlight: Bool { !inFlight.isEmpty }
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

    /// The next frame that an open WebSocket to this path may take.
    mutating func nextFrame(on path: String) -> SpreadbotSend? {
        guard posting == nil, let first = oldestWaiting, first.isFrame(on: path),
            inFlight.isEmpty || inFlightBytes + first.cost <= SpreadbotSends.mostInFlightBytes
        else { return nil }
        guard let send = takeFirst() else { return nil }
        inFlight.append(send)
        inFlightBytes += send.cost
        return send
    }

    /// The next request, once no earlier send is in progress.
    /// - Parameters:
    ///   - isWanted: whether a send goes by request.
    ///   - passes: whether such a send may overtake others.
    mutating func nextRequest(
        passes: Bool, where isWanted: (SpreadbotSend) -> Bool
    ) -> SpreadbotSend? {
        guard posting == nil, inFlight.isEmpty, let first = oldestWaiting else { return nil }
        if isWanted(first) {
            posting = takeFirst()
        } else if passes, let index = waiting[firstWaiting...].firstIndex(where: isWanted) {
            posting = waiting.remove(at: index)
        }
        return posting
    }

    /// - Returns: the frame after which to send a ping; nil during a ping, or without frames to
    ///   confirm.
    mutating func nextConfirmation() -> ID? {
        guard confirming == nil, let last = inFlight.last else { return nil }
        confirming = last.id
        return last.id
    }

    /// Removes the frames up to this one, which the server has.
    mutating func confirmed(_ id: ID) -> [SpreadbotSend] {
        confirming = nil
        let count = inFlight.prefix { $0.id <= id }.count
        return removeInFlight(count)
    }

    /// The frames up to this one were written, and their answers will not be read for a while.
    /// - Returns: the sends whose success can be reported. Durable ones are kept until the server
    ///   has them.
    mutating func written(_ id: ID) -> [SpreadbotSend] {
        let count = inFlight.prefix { $0.id <= id }.count
        let fresh = inFlight[..<count].filter { !$0.isReported }
        var kept = removeInFlight(count).filter { $0.isDurable }
        for index in kept.indices { kept[index].isReported = true }
        inFlightBytes += kept.reduce(0) { $0 + $1.cost }
        inFlight = kept + inFlight
        return fresh.map { send in
            var send = send
            send.isReported = send.isDurable
            return send
        }
    }

    /// The WebSocket is gone.
    /// - Parameter written: the last frame that was written completely; 0 for none.
    /// - Returns: the sends that may have arrived. The others wait again, before all later ones.
    mutating func dropped(written: ID) -> [SpreadbotSend] {
        confirming = nil
        let all = removeInFlight(inFlight.count)
        waiting = all.filter { $0.id > written || $0.isDurable } + takeWaiting()
        return all.filter { $0.id <= written && !$0.isDurable }
    }

    private mutating func removeInFlight(_ count: Int) -> [SpreadbotSend] {
        let gone = Array(inFlight.prefix(count))
        inFlight.removeFirst(count)
        inFlightBytes -= gone.reduce(0) { $0 + $1.cost }
        return gone
    }

    private mutating func takeWaiting() -> [SpreadbotSend] {
        let all = Array(waiting[firstWaiting...])
        waiting = []
        firstWaiting = 0
        return all
    }

    /// Removes the request that has ended.
    mutating func posted() -> SpreadbotSend? { exchange(&posting, with: nil) }

    /// Returns the request to the front of the queue.
    mutating func postAgain() {
        waiting = [posting].compactMap { $0 } + takeWaiting()
        posting = nil
    }

    /// Removes the send that has waited longest.
    mutating func dropOldest() -> SpreadbotSend? {
        // Durable sends do not count: they wait in a file.
        guard let index = waiting[firstWaiting...].firstIndex(where: { !$0.isDurable }) else {
            return nil
        }
        return index == firstWaiting ? takeFirst() : waiting.remove(at: index)
    }

    mutating func dropNewest() -> SpreadbotSend? {
        guard waitingCount > 0, waiting.last?.isDurable == false else { return nil }
        return waiting.popLast()
    }

    /// Ends messages that were not written, including one that is being posted.
    /// - Returns: the messages that ended, in order. Durable ones, frames and requests stay.
    mutating func closeWaiting() -> [SpreadbotSend] {
        close {
            $0.isMessage
        } given: {
            $0.isMessage
        }
    }

    /// The same for messages that go to the path of the connection.
    mutating func closeMessages() -> [SpreadbotSend] {
        close {
            $0.isBoundToConnection
        } given: {
            $0.isBoundToConnection
        }
    }

    /// - Parameters:
    ///   - isInterrupted: whether to interrupt a request in progress.
    ///   - isGivenUp: whether to give up a send if it is not durable.
    private mutating func close(
        _ isInterrupted: (SpreadbotSend) -> Bool, given isGivenUp: (SpreadbotSend) -> Bool
    ) -> [SpreadbotSend] {
        let interrupted = posting.flatMap { isInterrupted($0) ? $0 : nil }
        if interrupted != nil { posting = nil }
        let all = [interrupted].compactMap { $0 } + takeWaiting()
        waiting = all.filter { $0.isDurable || !isGivenUp($0) }
        return all.filter { !$0.isDurable && isGivenUp($0) }
    }

    /// Like `closeWaiting`, but including frames, because there is no connection any longer.
    mutating func close() -> [SpreadbotSend] {
        confirming = nil
        let frames = removeInFlight(inFlight.count)
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

extension RESTPolicy {
    /// Sets how a send is posted. It has no deadline, because over a slow link its body may need
    /// long; each attempt still ends after a time without a byte.
    package mutating func setRules(for send: SpreadbotSend) {
        needsHeadAlone = send.isMessage
        deadline = .zero
        // The default deadline is as short.
        retryAfterLimit = .seconds(30)
    }
}
