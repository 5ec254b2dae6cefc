import Wire

/// Errors of the server that name no channel, until it is clear which subscriptions they answer
/// (docs/pusher-rules.md, U15). Never more than there are unanswered subscriptions.
struct PusherRefusals: Sendable {
    struct Refusal: Sendable {
        let words: String
        let body: [UInt8]
        /// It can only be about a signature: that of a subscription, or of the sign-in.
        let isAboutSignature: Bool
    }

    private(set) var all: [Refusal] = []

    var isEmpty: Bool { all.isEmpty }
    var aboutSignatures: [Refusal] { all.filter { $0.isAboutSignature } }

    mutating func add(_ refusal: Refusal) { all.append(refusal) }
    mutating func removeAll() { all = [] }
    mutating func removeAboutSignatures() { all.removeAll { $0.isAboutSignature } }

    /// Removes the one that most likely answers this subscription.
    mutating func take(hasSignature: Bool) -> Refusal? {
        let index = all.firstIndex { $0.isAboutSignature == hasSignature }
        guard let index = index ?? (hasSignature ? all.indices.first : nil) else { return nil }
        return all.remove(at: index)
    }
}

// Subscriptions that the server refuses without a name, or does not answer.
extension PusherSession {
    /// An error without a channel on a confirmed connection. Neither Pusher nor Reverb names the
    /// channel whose subscription it refuses.
    mutating func refusedWithoutChannel(_ message: PusherErrorMessage, _ event: PusherEvent) {
        let isAboutSignature = message.code == nil || message.code == 4009
        // Reverb refuses with 4200 what it cannot read, and sign-ins, which it does not know.
        guard isAboutSignature || message.code == 4200 else { return }
        let refusal = PusherRefusals.Refusal(
            words: words(message), body: event.dataBytes, isAboutSignature: isAboutSignature)
        guard isAboutSignature || user.sentAt.isEmpty else {
            user.answered()
            if user.stage == .sent, user.sentAt.isEmpty { failSignIn(refusal) }
            return judgeRefusals()
        }
        refusals.add(refusal)
        judgeRefusals()
    }

    /// Fails what must have been refused: as many subscriptions as there are refusals for them.
    mutating func judgeRefusals() {
        guard !refusals.isEmpty else { return }
        let signed = channels.unanswered.filter { channels[$0]?.name.needsAuthorization ?? false }
        let aboutSignatures = refusals.aboutSignatures
        if aboutSignatures.count >= signed.count + user.sentAt.count {
            refusals.removeAboutSignatures()
            fail(signed, aboutSignatures)
        }
        let (all, reasons) = (channels.unanswered, refusals.all)
        guard reasons.count >= all.count + user.sentAt.count else { return }
        refusals.removeAll()
        fail(all, reasons)
    }

    /// - Parameters:
    ///   - ids: in the order in which they were sent, which is that of most servers' answers.
    ///   - reasons: at least as many, and as many as sign-ins more.
    private mutating func fail(_ ids: [ChannelID], _ reasons: [PusherRefusals.Refusal]) {
        user.sentAt = []
        for (id, reason) in zip(ids, reasons) {
            guard let name = channels[id]?.name.text else { continue }
            fail(id, refusal(of: name, reason.words, body: reason.body))
        }
        if user.stage == .sent, let reason = reasons.last { failSignIn(reason) }
    }

    private mutating func failSignIn(_ refusal: PusherRefusals.Refusal) {
        let error = RealtimeError(.auth, "the server refused the sign-in: \(refusal.words)")
        failSignIn(PusherSubscriptionFailure(error, body: refusal.body))
    }

    /// Fails subscriptions that the server has not answered in time. An answer may still come.
    mutating func failUnanswered(_ now: Instant) {
        while let id = unanswered.popDue(channels, now) {
            guard let name = channels[id]?.name else { continue }
            let refusal = refusals.take(hasSignature: name.needsAuthorization)
            let hint = refusal.map { "; meanwhile it sent an error without a channel: \($0.words)" }
            let error = RealtimeError(
                .timeout,
                "the server has not answered the subscription of \(name.text.quoted()) for"
                    + " \(PusherConfiguration.answerTimeout.readable)\(hint ?? "")")
            fail(id, PusherSubscriptionFailure(error, body: refusal?.body))
            judgeRefusals()
        }
    }

    func words(_ message: PusherErrorMessage) -> String {
        message.message + (message.code.map { " (code \($0))" } ?? "")
    }

    func refusal(
        of channel: String, _ words: String, body: [UInt8], status: Int? = nil
    ) -> PusherSubscriptionFailure {
        // Some servers quote signatures, which must not come into a log.
        let words = PusherRedaction.text(of: words)
        let error = RealtimeError(
            .auth, "the server refused the subscription of \(channel.quoted()): \(words)")
        return PusherSubscriptionFailure(error, body: body, status: status)
    }
}
