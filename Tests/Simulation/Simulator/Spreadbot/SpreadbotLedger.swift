import Session
import Wire

/// Which messages the user may be given, by a second reading of B7 and B8.
struct SpreadbotDelivery {
    /// The next place, once one with an id was delivered.
    private(set) var expected: Int?
    /// The place of the first of those that came without a gap.
    private(set) var begin: Int?
    private var delivered: [String] = []
    private var mayRepeat = false

    mutating func attached() { mayRepeat = true }

    /// The cursor is cleared: whatever comes next is the beginning.
    mutating func reset() { self = SpreadbotDelivery() }

    /// - Parameters:
    ///   - floor: the attach could not know what is before this.
    ///   - isAmbiguous: ids come twice.
    /// - Returns: whether the user is to have it; and what is wrong with that.
    mutating func arrived(
        _ message: SpreadbotServer.Message, floor: Int, isAmbiguous: Bool
    ) -> (Bool, wrong: String?) {
        guard let id = message.id else { return (true, nil) }
        let place = message.place
        if mayRepeat, delivered.suffix(256).contains(id) {
            guard let expected, place >= expected else { return (false, nil) }
            if place > expected { begin = place }
            self.expected = place + 1
            return (false, isAmbiguous ? nil : "message \(place) is taken for a repeat")
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

/// Each send with what has become of it.
final class SpreadbotLedger {
    private struct Entry {
        let isDurable: Bool
        let isMessage: Bool
        /// Where it was to go.
        let path: String
        /// The server has answered a close frame behind it.
        var mustSucceed = false
        var isWritten = false
        var isCancelled = false
        /// How its request failed, if nothing can be hoped for.
        var refusal: RealtimeError.Code?
        var isTold = false
        var isSent = false
    }

    private let world: World
    private let capacity: Int
    private var entries: [UInt64: Entry] = [:]
    /// Not told yet.
    private(set) var pending = 0
    /// Frames written on the leg that stands, and not confirmed.
    private(set) var flying: Set<UInt64> = []
    /// Something was given up with the connection, by the user's wish or another path.
    var mayClose = false
    /// When a session ended last, and by what.
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

    /// Messages that a connection is needed for, and that were not given to one.
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
            return world.fail("sends \(number), whose end was told")
        }
        world.require(
            // A request knows where it goes, and so does what outlives the process.
            !isFrame && (entry.isDurable || !entry.isMessage) || entry.path == path,
            "\(number) for \(entry.path) goes to \(path)")
        if isFrame { flying.insert(number) }
    }

    /// A leg is gone: what was written to it may have arrived.
    func dropped(written: [UInt64]) {
        flying = []
        for number in written { entries[number]?.isWritten = true }
    }

    func told(_ number: UInt64, _ error: RealtimeError?) {
        guard var entry = entries[number] else { return world.fail("tells of no send: \(number)") }
        if entry.isTold { return world.fail("tells the end of \(number) twice") }
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

    /// - Parameter received: by the server, in order.
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
        // A request goes before durable messages that wait for a connection.
        var (lastDurable, last) = (-1, -1)
        for (number, entry) in entries.sorted(by: { $0.key < $1.key }) where entry.isSent {
            guard let place = places[number] else {
                return world.fail("\(number) is said to be sent, and did not arrive")
            }
            let least = entry.isMessage ? max(lastDurable, last) : last
            world.require(place > least, "\(number) arrived before one sent earlier")
            if entry.isMessage, entry.isDurable { lastDurable = place } else { last = place }
        }
    }
}
