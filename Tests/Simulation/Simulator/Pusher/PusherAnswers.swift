import Session

/// A second reading of the rules about what the server answers to subscriptions: which have been
/// refused, although no error names them, which have waited for too long, and which must wait for
/// the answer to an earlier one.
final class PusherAnswers {
    private struct Sent {
        var at: Instant
        /// The number of the first ping after it.
        let fence: Int
        /// Errors without a channel that came since.
        var errors = 0
        /// The user has unsubscribed since.
        var isEnded = false
    }

    private let world: World
    /// Subscriptions without an answer that names them.
    private var waiting: [String: Sent] = [:]
    /// When the sign-ins were sent that have no answer, also those that the user has ended.
    private var signIns: [Instant] = []
    /// Errors about signatures since one is awaited.
    private var errors = 0
    /// An error may have been counted for something that is not waited for any more, so the number
    /// of errors proves nothing.
    private var isUnclear = false

    private var pings = 0
    private var pongs = 0
    /// Channels that wait for the answer to an ended subscription.
    private var fences: Set<String> = []
    /// Channels of which the user, or the time, may have been faster than the messages that they
    /// concern.
    private var doubtful: Set<String> = []
    /// Channels whose subscription was not answered for 30 s, and not since.
    private var late: Set<String> = []

    init(_ world: World) { self.world = world }

    private var signed: [String] {
        waiting.keys.filter { $0.hasPrefix("private-") || $0.hasPrefix("presence-") }
    }

    // MARK: What happens

    /// The connection begins, or ends.
    func reset() {
        waiting = [:]
        signIns = []
        (pings, pongs) = (0, 0)
        fences = []
        doubtful = []
        late = []
        settle()
    }

    /// Begins to count when nothing waits.
    private func settle() {
        guard signed.isEmpty, signIns.isEmpty else { return }
        (errors, isUnclear) = (0, false)
    }

    func sent(_ name: String) {
        if fences.contains(name) { passEarly(name) }
        if waiting[name] != nil, !name.hasPrefix("#") { isUnclear = true }
        waiting[name] = Sent(at: world.now, fence: pings + 1)
    }

    // MARK: Fences

    /// - Parameters:
    ///   - wasSent: the machine has sent the subscription, which was not answered.
    ///   - isInTurn: its message may be one of the actions that were not performed yet.
    func unsubscribed(_ name: String, wasSent: Bool, isInTurn: Bool) {
        fences.remove(name)
        guard wasSent else { return }
        waiting[name]?.isEnded = true
        if isInTurn { doubtful.insert(name) }
    }

    func subscribedAgain(_ name: String) {
        guard let old = waiting[name], old.isEnded else { return }
        if old.errors > 0 || world.now - old.at >= .seconds(30) { doubtful.insert(name) }
        world.count("subscribed again")
        guard old.fence > pongs else { return pass(name) }
        fences.insert(name)
    }

    func pingSent() { pings += 1 }

    /// Whether a channel may wait for a ping that was not sent yet.
    var mayPing: Bool {
        waiting.contains { name, sent in
            sent.fence > pings && (fences.contains(name) || name.hasPrefix("#"))
        } || !doubtful.isEmpty
    }

    private func ponged() {
        pongs = min(pongs + 1, pings)
        for name in fences where waiting[name].map({ $0.fence <= pongs }) ?? true {
            world.count("subscribed after a pong")
            pass(name)
        }
    }

    /// The channel does not wait any longer, and takes an error with it.
    private func pass(_ name: String) {
        fences.remove(name)
        if let sent = waiting.removeValue(forKey: name), sent.errors > 0 { isUnclear = true }
        settle()
    }

    /// The channel does not wait, although there was neither an answer nor a pong.
    private func passEarly(_ name: String) {
        let isOver = waiting[name].map { world.now - $0.at >= .seconds(30) } ?? true
        world.require(isOver || isDoubtful(name), "\(name) does not wait for its fence")
        if isOver {
            world.count("subscribed without a pong")
            late.insert(name)
        }
        pass(name)
    }

    /// Whether a subscription may reach a server that still has to answer an earlier one.
    func isLate(_ name: String) -> Bool { late.contains(name) }

    private func isDoubtful(_ name: String) -> Bool {
        doubtful.contains(name) || waiting[name].map { $0.errors > 0 } ?? true
    }

    /// A channel is subscribed as soon as nothing keeps it from that, and no sooner.
    func checkFences(
        _ names: Dictionary<String, UInt64>.Keys, _ state: (String) -> PusherChannelState?
    ) {
        for name in names {
            switch (fences.contains(name), state(name) == .idle) {
            case (false, true):
                world.require(doubtful.contains(name), "\(name) waits for nothing")
            case (true, true):
                let isPinged = waiting[name].map { $0.fence <= pings } ?? true
                world.require(isPinged || isDoubtful(name), "no ping is sent for \(name)")
            case (true, false): passEarly(name)
            case (false, false): break
            }
        }
    }

    func signInSent() { signIns.append(world.now) }

    private func signInAnswered() {
        if !signIns.isEmpty { signIns.removeFirst() }
        settle()
    }

    /// The client reads again.
    func resumed() {
        for name in waiting.keys { waiting[name]?.at = world.now }
        signIns = signIns.map { _ in world.now }
    }

    /// A message has come on the connection.
    /// - Parameter isUser: whether it confirms the user of the last sign-in, if that counts.
    func received(_ event: String, _ channel: String, code: Int?, isUser: Bool) {
        switch event {
        case "pusher_internal:subscription_succeeded", "pusher:subscription_error",
            "pusher_internal:subscription_error":
            answered(channel)
        case "pusher:pong": ponged()
        case "pusher:signin_success": if isUser || signIns.count > 1 { signInAnswered() }
        case "pusher:error":
            guard channel.isEmpty else { return answered(channel) }
            refused(code)
        default: break
        }
    }

    private func answered(_ name: String) {
        waiting[name] = nil
        fences.remove(name)
        late.remove(name)
        settle()
    }

    private func refused(_ code: Int?) {
        switch code {
        case nil, 4009:
            guard !signed.isEmpty || !signIns.isEmpty else { return }
            errors += 1
            for name in signed { waiting[name]?.errors += 1 }
        case 4200:
            guard signIns.isEmpty else { return signInAnswered() }
            isUnclear = true
            for name in waiting.keys { waiting[name]?.errors += 1 }
        default: break
        }
    }

    // MARK: What must follow

    /// The client says that the subscription of a channel, which it has sent, has failed.
    func failed(_ name: String) {
        guard let sent = waiting[name] else { return }
        let age = world.now - sent.at
        let isRefused = sent.errors > 0 && (isUnclear || errors >= signed.count + signIns.count)
        world.require(
            isRefused || age >= .seconds(30), "\(name) fails without a reason after \(age)")
        guard sent.errors == 0 || age >= .seconds(30) else { return }
        late.insert(name)
        if errors > 0 { isUnclear = true }
        waiting[name] = nil
        settle()
    }

    /// As many errors as subscriptions that need a signature: they have all been refused.
    func checkRefusals(_ state: (String) -> PusherChannelState?) {
        let signed = signed
        guard !isUnclear, errors > 0, errors >= signed.count + signIns.count else { return }
        if signed.count > 1 { world.count("refused without a name") }
        for name in signed {
            world.require(state(name) != .sent, "\(name) waits, though it was refused")
            waiting[name] = nil
            fences.remove(name)
        }
        signIns = []
        settle()
    }

    /// No subscription waits for more than 30 s, and no sign-in counts for longer.
    func checkTimes(_ state: (String) -> PusherChannelState?) {
        for (name, sent) in waiting where state(name) == .sent {
            world.require(world.now - sent.at <= .seconds(30), "\(name) waits for too long")
        }
        // The client does not wait any longer for those that the user has ended, either.
        let count = signIns.count + waiting.count
        signIns.removeAll { world.now - $0 >= .seconds(30) }
        for (name, sent) in waiting
        where state(name) != .sent && world.now - sent.at >= .seconds(30) {
            late.insert(name)
            waiting[name] = nil
        }
        if signIns.count + waiting.count < count, errors > 0 { isUnclear = true }
        for name in fences where waiting[name] == nil {
            fences.remove(name)
            doubtful.insert(name)
        }
        settle()
    }
}
