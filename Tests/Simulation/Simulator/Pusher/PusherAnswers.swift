import Session

/// A second reading of the rules about what the server answers to subscriptions: which have been
/// refused, although no error names them, and which have waited for too long.
final class PusherAnswers {
    private struct Sent {
        var at: Instant
        /// Errors without a channel that came since.
        var errors = 0
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

    init(_ world: World) { self.world = world }

    private var signed: [String] {
        waiting.keys.filter { $0.hasPrefix("private-") || $0.hasPrefix("presence-") }
    }

    // MARK: What happens

    /// The connection begins, or ends.
    func reset() {
        waiting = [:]
        signIns = []
        settle()
    }

    /// Begins to count when nothing waits.
    private func settle() {
        guard signed.isEmpty, signIns.isEmpty else { return }
        (errors, isUnclear) = (0, false)
    }

    func sent(_ name: String) {
        if waiting[name] != nil { isUnclear = true }
        waiting[name] = Sent(at: world.now)
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
            waiting[channel] = nil
            settle()
        case "pusher:signin_success": if isUser || signIns.count > 1 { signInAnswered() }
        case "pusher:error":
            guard channel.isEmpty else {
                waiting[channel] = nil
                return settle()
            }
            refused(code)
        default: break
        }
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
        waiting = waiting.filter { state($0) == .sent || world.now - $1.at < .seconds(30) }
        if signIns.count + waiting.count < count, errors > 0 { isUnclear = true }
        settle()
    }
}
