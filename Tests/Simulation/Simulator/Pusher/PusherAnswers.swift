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
    private var isSigningIn = false
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
        isSigningIn = false
        settle()
    }

    /// Begins to count when nothing waits.
    private func settle() {
        guard signed.isEmpty, !isSigningIn else { return }
        (errors, isUnclear) = (0, false)
    }

    func sent(_ name: String) {
        if waiting[name] != nil { isUnclear = true }
        waiting[name] = Sent(at: world.now)
    }

    func signInSent() {
        if isSigningIn { isUnclear = true }
        isSigningIn = true
    }

    func signInEnded(isAnswered: Bool) {
        if isSigningIn, !isAnswered, errors > 0 { isUnclear = true }
        isSigningIn = false
        settle()
    }

    /// The client reads again.
    func resumed() {
        for name in waiting.keys { waiting[name]?.at = world.now }
    }

    /// A message has come on the connection.
    func received(_ event: String, _ channel: String, code: Int?) {
        switch event {
        case "pusher_internal:subscription_succeeded", "pusher:subscription_error",
            "pusher_internal:subscription_error":
            waiting[channel] = nil
            settle()
        case "pusher:signin_success": signInEnded(isAnswered: true)
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
            guard !signed.isEmpty || isSigningIn else { return }
            errors += 1
            for name in signed { waiting[name]?.errors += 1 }
        case 4200:
            guard !isSigningIn else { return signInEnded(isAnswered: true) }
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
        world.require(
            sent.errors > 0 || age >= .seconds(30), "\(name) fails without a reason after \(age)")
        guard sent.errors == 0 || age >= .seconds(30) else { return }
        if errors > 0 { isUnclear = true }
        waiting[name] = nil
        settle()
    }

    /// As many errors as subscriptions that need a signature: they have all been refused.
    func checkRefusals(_ state: (String) -> PusherChannelState?) {
        let signed = signed
        guard !isUnclear, errors > 0, errors >= signed.count + (isSigningIn ? 1 : 0) else { return }
        if signed.count > 1 { world.count("refused without a name") }
        for name in signed {
            world.require(state(name) != .sent, "\(name) waits, though it was refused")
            waiting[name] = nil
        }
        isSigningIn = false
        settle()
    }

    /// No subscription waits for more than 30 s.
    func checkTimes(_ state: (String) -> PusherChannelState?) {
        for (name, sent) in waiting where state(name) == .sent {
            world.require(world.now - sent.at <= .seconds(30), "\(name) waits for too long")
        }
    }
}
