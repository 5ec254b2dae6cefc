import Session
import Wire

/// What the user asked for, and what must be reported.
final class PusherLedger {
    private let world: World
    private var lastID: UInt64 = 0
    /// The channels that the user has subscribed.
    private(set) var registered: [String: UInt64] = [:]
    private(set) var names: [UInt64: String] = [:]
    /// Events that have arrived and were not delivered yet, by channel; 0 is the user's.
    private var owed: [UInt64: [String]] = [:]
    /// The event for which a new key was requested.
    private var renewedFor: [UInt64: String] = [:]
    private(set) var states: [UInt64: PusherChannelState] = [:]
    private var tables: [UInt64: PusherMembers] = [:]
    private(set) var members: [UInt64: [String]] = [:]
    private var formerMembers: [UInt64: [String]] = [:]
    /// Client events in the order of the calls, by registration.
    private var triggered: [UInt64: [Int]] = [:]
    private var dropped: Set<Int> = []
    private var lastTrigger = 0
    /// Triggered without faults: these must arrive.
    private var certain: [String: [Int]] = [:]
    private var sentEvents: [Instant] = []
    private(set) var state = PusherState.disconnected
    /// The code of the last error that told a refusal.
    private var refusal: Int?

    init(_ world: World) { self.world = world }

    // MARK: The user

    func subscribe(_ name: String) -> UInt64 {
        if let id = registered[name] { return id }
        lastID += 1
        (registered[name], names[lastID], states[lastID]) = (lastID, name, .idle)
        return lastID
    }

    func unsubscribe(_ name: String) -> UInt64? {
        guard let id = registered.removeValue(forKey: name) else { return nil }
        (names[id], states[id], owed[id], members[id]) = (nil, nil, nil, nil)
        (tables[id], triggered[id]) = (nil, nil)
        return id
    }

    func trigger(_ id: UInt64, isCertain: Bool) -> Int {
        lastTrigger += 1
        triggered[id, default: []].append(lastTrigger)
        if isCertain, let name = names[id] { certain[name, default: []].append(lastTrigger) }
        return lastTrigger
    }

    // MARK: Events

    /// An event has arrived, and must be delivered unless the user unsubscribes before.
    func arrived(_ event: String, on channel: String, user: String?) {
        if let user, channel == "#server-to-user-\(user)" {
            owed[0, default: []].append(event)
        } else if let id = registered[channel] {
            owed[id, default: []].append(event)
        }
    }

    func delivered(_ event: String, _ id: UInt64) {
        world.require(id == 0 || names[id] != nil, "\(event) is delivered to no channel")
        guard let first = owed[id]?.first else {
            return world.fail("\(event) is delivered, and did not come, or twice")
        }
        world.require(first == event, "\(event) is delivered before \(first)")
        owed[id]?.removeFirst()
    }

    /// Whether an event waits on this channel.
    func owes(_ id: UInt64) -> Bool { owed[id]?.isEmpty == false }

    func keyRequested(_ id: UInt64) {
        guard let first = owed[id]?.first else { return world.fail("a key is requested in vain") }
        world.require(renewedFor[id] != first, "two keys are requested for \(first)")
        renewedFor[id] = first
    }

    /// After all actions.
    /// - Parameter waits: channels that wait for a key.
    func checkDeliveries(_ waits: Set<UInt64>) {
        for (id, events) in owed where !events.isEmpty && !waits.contains(id) {
            world.fail("\(events[0]) on \(names[id] ?? "\(id)") is not delivered")
        }
    }

    // MARK: Reports

    func changed(_ change: PusherStateChange) {
        world.require(change.old == state, "a change from \(change.old), and it was \(state)")
        let isWait =
            change.new == .reconnecting && change.error?.code == .connect && change.retryIn == nil
        world.require(change.new != change.old || isWait, "a change to the same state")
        if isWait, change.old == .disconnected { world.count("connects without a network") }
        if change.new == .disconnected, let code = change.closeCode, code / 100 == 40 {
            world.require(refusal == code, "a refusal with \(code) is not reported")
        }
        if change.new == .connecting { refusal = nil }
        state = change.new
    }

    func reported(_ report: PusherSession.Report) {
        switch report {
        case .channel(let id, let report): reported(id, report)
        case .failed(let error): if let code = error.code, code / 100 == 40 { refusal = code }
        default: break
        }
    }

    private func reported(
        _ id: PusherSession.ChannelID, _ report: PusherSession.ChannelReport
    ) {
        switch report {
        case .state(let state):
            world.require(names[id] != nil, "the state of an unknown channel")
            world.require(states[id] != state, "the state \(state) twice")
            states[id] = state
        case .subscribed: world.require(states[id] == .subscribed, "\(id) is subscribed")
        case .failed: world.require(states[id] == .failed, "\(id) has failed")
        case .members(let change):
            tables[id, default: .none].apply(change)
            let ids = tables[id]?.table.members.map { $0.id } ?? []
            world.require(Set(ids).count == ids.count, "a member is there twice")
            world.require(
                states[id] == .subscribed || ids.isEmpty, "members of a channel that is not ready")
            formerMembers[id] = members[id]
            members[id] = ids
        case .memberAdded(let member):
            world.require(
                members[id]?.contains(member.id) == true
                    && formerMembers[id]?.contains(member.id) != true, "\(member.id) is not new")
        case .memberRemoved(let member):
            world.require(
                members[id]?.contains(member.id) == false
                    && formerMembers[id]?.contains(member.id) == true, "\(member.id) was not there")
        case .triggerFailed(let event, _):
            world.require(names[id] != nil, "an event of an unknown channel")
            if let number = Int(event.dropFirst("client-".count)) { dropped.insert(number) }
        case .count, .decryptionFailed: break
        }
    }

    // MARK: Client events

    func sent(_ number: Int, rate: Int) {
        guard rate > 0 else { return }
        sentEvents.append(world.now)
        let recent = sentEvents.filter { world.now - $0 < .seconds(1) }
        world.require(recent.count <= rate, "\(recent.count) client events in a second")
        if recent.count >= rate { world.count("client events at the limit") }
    }

    /// - Parameter received: by the server, by channel.
    func verifyTriggers(_ received: [String: [Int]]) {
        for (channel, numbers) in received {
            for (former, next) in zip(numbers, numbers.dropFirst()) {
                world.require(former < next, "client events \(former) and \(next) on \(channel)")
            }
            for number in numbers {
                world.require(!dropped.contains(number), "client event \(number) was dropped")
            }
        }
        for (channel, numbers) in certain {
            let all = Set(received[channel] ?? [])
            for number in numbers where !dropped.contains(number) {
                world.require(all.contains(number), "client event \(number) did not arrive")
            }
            world.count("client events arrived")
        }
    }
}
