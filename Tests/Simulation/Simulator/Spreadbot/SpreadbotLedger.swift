import Session
import Wire

/// Which messages the user may receive, by a second reading of B7 and B8.
struct SpreadbotDelivery {
    /// The place after the last delivered message with an id.
    private(set) var expected: Int?
    /// The first place from which messages came without a gap.
    private(set) var begin: Int?
    private var delivered: [String] = []
    private var mayRepeat = false

    mutating func attached() { mayRepeat = true }

    /// The cursor was cleared, so any message may be the first.
    mutating func reset() { self = SpreadbotDelivery() }

    /// - Parameters:
    ///   - floor: the server could not know what comes before this place.
    ///   - isAmbiguous: ids are used twice.
    /// - Returns: whether the user receives it; and what is wrong with it.
    mutating func arrived(
        _ message: SpreadbotServer.Message, floor: Int, isAmbiguous: Bool
    ) -> (Bool, wrong: String?) {
        guard let id = message.id else { return (true, nil) }
        let place = message.place
        if mayRepeat, delivered.suffix(256).contains(id) {
            guard let expected, place >= expected else { return (false, nil) }
            if place > expected { begin = place }
            self.expected = place + 1
            return (false, isAmbiguous ? nil : "message \(place) is mistaken for a repeat")
        }
        mayRepeat = false
        delivered.append(id)
        defer { expected = place + 1 }
        guard let expected else {
            begin = place
            return (true, nil)
        }
        if place < expected { return (true, "message \(place) comes twice") }
        if place > expected { begin = place }
        let isGap = place > max(expected, floor) && !isAmbiguous
        return (true, isGap ? "message \(place) comes, \(expected) does not" : nil)
    }
}

/// Every send and how it ended.
final class SpreadbotLedger {
    private struct Entry {
        let isDurable: Bool
        let isMessage: Bool
        /// The path that it was sent to.
        let path: String
        /// The server has answered a close frame that came after it.
        var mustSucceed = false
        var isWritten = false
        var isCancelled = false
        /// The error of its request, if it is final.
        var refusal: RealtimeError.Code?
        var isTold = false
        var isSent = false
    }

    private let world: World
    private let capacity: Int
    private var entries: [UInt64: Entry] = [:]
    /// How many ends were not reported yet.
    private(set) var pending = 0
    /// Frames written on the current leg, and not confirmed.
    private(set) var flying: Set<UInt64> = []
    /// The connection gave something up, because the user wanted it or chose another path.
    var mayClose = false
    /// When a session ended last, and with which error.
    var fatal: RealtimeError.Code?

    init(_ world: World, capacity: Int) {
        self.world = world
        self.capacity = capacity
    }

    var count: UInt64 { UInt64(entries.count) }

    func submitted(_ send: SpreadbotSend, for path: String) {
        entries[send.number] = Entry(
            isDurable: send.isDurable, isMessage: send.kind == .text || send.kind == .binary,
            path: path)
        pending += 1
    }

    /// The WebSocket was closed, and the server has answered.
    func closedCleanly() {
        for number in flying { entries[number]?.mustSucceed = true }
    }

    /// Whether messages wait that need a connection and were not given to one.
    var isKept: Bool {
        entries.contains { number, entry in
            !entry.isTold && entry.isMessage && !entry.isDurable && !flying.contains(number)
        }
    }

    func isDurable(_ number: UInt64) -> Bool { entries[number]?.isDurable ?? false }
    func isRequest(_ number: UInt64) -> Bool { entries[number]?.isMessage == false }
    func cancelled(_ number: UInt64) { entries[number]?.isCancelled = true }
    func refused(_ number: UInt64, _ code: RealtimeError.Code) { entries[number]?.refusal = code }

    func began(_ number: UInt64, isFrame: Bool, on path: String) {
        guard let entry = entries[number], !entry.isTold else {
            return world.fail("sends \(number), whose end was reported")
        }
        world.require(
            // Requests name their path themselves, and so do sends that outlive the process.
            !isFrame && (entry.isDurable || !entry.isMessage) || entry.path == path,
            "\(number) for \(entry.path) goes to \(path)")
        if isFrame { flying.insert(number) }
    }

    /// A leg is gone: frames written on it may have arrived.
    func dropped(written: [UInt64]) {
        flying = []
        for number in written { entries[number]?.isWritten = true }
    }

    func told(_ number: UInt64, _ error: RealtimeError?) {
        guard var entry = entries[number] else {
            return world.fail("reports an unknown send: \(number)")
        }
        if entry.isTold { return world.fail("reports the end of \(number) twice") }
        entry.isTold = true
        entry.isSent = error == nil
        let isFlying = flying.remove(number) != nil
        entries[number] = entry
        pending -= 1
        guard let error else { return }
        world.count("send \(error.code)")
        world.require(!entry.mustSucceed, "\(number) was received, and ends with \(error.code)")
        let isAllowed =
            switch error.code {
            case .queueFull: !entry.isDurable && pending >= capacity
            case .cancelled: entry.isCancelled
            case .connectionLost where entry.refusal == nil:
                !entry.isDurable && (entry.isWritten || isFlying || fatal == error.code)
            default:
                entry.refusal == error.code
                    || !entry.isDurable && (error.code == .closed ? mayClose : error.code == fatal)
            }
        world.require(isAllowed, "send \(number) ends with \(error)")
    }

    /// - Parameter received: the numbers that the server received, in order.
    func verify(_ received: [UInt64]) {
        world.require(pending == 0, "\(pending) sends have no end")
        var places: [UInt64: Int] = [:]
        for (place, number) in received.enumerated() {
            guard let entry = entries[number] else { return world.fail("received \(number)") }
            if places[number] != nil {
                world.require(entry.isDurable, "\(number) arrived twice")
            } else {
                places[number] = place
            }
        }
        // A request precedes durable messages that wait for a connection.
        var (lastDurable, last) = (-1, -1)
        for (number, entry) in entries.sorted(by: { $0.key < $1.key }) where entry.isSent {
            guard let place = places[number] else {
                return world.fail("\(number) was reported as sent, and did not arrive")
            }
            let least = entry.isMessage ? max(lastDurable, last) : last
            world.require(place > least, "\(number) arrived before one sent earlier")
            if entry.isMessage, entry.isDurable { lastDurable = place } else { last = place }
        }
    }
}
