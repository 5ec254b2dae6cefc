import Wire

/// Errors of the server that name no channel, until it is clear which subscriptions they answer
/// (docs/pusher-rules.md, U15). Never more than there are unanswered subscriptions.
struct PusherRefusals: Sendable {
    struct Refusal: Sendable {
        let words: String
        let body: [UInt8]
        let time: Instant
        /// It can only be about a signature: that of a subscription, or of the sign-in.
        let isAboutSignature: Bool
    }

    /// The codes of errors that can only be about a signature. Pusher's others below 4200 are about
    /// the connection: 4003 for an app that is disabled, 4100 for too many connections.
    static let codes = [4009, 401, 403]

    private(set) var all: [Refusal] = []

    var isEmpty: Bool { all.isEmpty }
    var aboutSignatures: [Refusal] { all.filter { $0.isAboutSignature } }

    mutating func add(_ refusal: Refusal) { all.append(refusal) }
    mutating func removeAll() { all = [] }
    mutating func removeAboutSignatures() { all.removeAll { $0.isAboutSignature } }

    /// Removes the one that most likely answers this subscription.
    /// - Parameter sentAt: when it was sent; nil if any refusal may answer it.
    mutating func take(hasSignature: Bool, since sentAt: Instant?) -> Refusal? {
        let isLater = { (refusal: Refusal) in sentAt.map { $0 <= refusal.time } ?? true }
        let index =
            all.firstIndex { $0.isAboutSignature == hasSignature && isLater($0) }
            ?? (hasSignature ? all.firstIndex { isLater($0) } : nil)
        return index.map { all.remove(at: $0) }
    }
}

// Subscriptions that the server refuses without a name, or does not answer.
extension PusherSession {
    /// An error without a channel on a confirmed connection. Neither Pusher nor Reverb names the
    /// channel whose subscription it refuses.
    mutating func refusedWithoutChannel(
        _ message: PusherErrorMessage, _ event: PusherEvent, _ now: Instant
    ) {
        let isAboutSignature = message.code.map { PusherRefusals.codes.contains($0) } ?? true
        // Reverb refuses with 4200 what it cannot read, and sign-ins, which it does not know.
        guard isAboutSignature || message.code == 4200 else { return }
        let refusal = PusherRefusals.Refusal(
            words: words(message), body: event.dataBytes, time: now,
            isAboutSignature: isAboutSignature)
        guard isAboutSignature || user.sentAt.isEmpty else {
            user.answered()
            if user.stage == .sent, user.sentAt.isEmpty { failSignIn(refusal, now) }
            return judgeRefusals(now)
        }
        refusals.add(refusal)
        judgeRefusals(now)
    }

    /// Fails what must have been refused: as many subscriptions as there are refusals for them.
    mutating func judgeRefusals(_ now: Instant) {
        guard !refusals.isEmpty else { return }
        let signed = channels.unanswered.filter { channels[$0]?.name.needsAuthorization ?? false }
        let aboutSignatures = refusals.aboutSignatures
        if aboutSignatures.count >= signed.count + user.sentAt.count {
            refusals.removeAboutSignatures()
            refuse(signed, aboutSignatures, now)
        }
        let (all, reasons) = (channels.unanswered, refusals.all)
        guard reasons.count >= all.count + user.sentAt.count else { return }
        refusals.removeAll()
        refuse(all, reasons, now)
    }

    /// - Parameters:
    ///   - ids: in the order in which they were sent, which is that of most servers' answers.
    ///   - reasons: at least as many, and as many as sign-ins more.
    private mutating func refuse(
        _ ids: [ChannelID], _ reasons: [PusherRefusals.Refusal], _ now: Instant
    ) {
        user.sentAt = []
        for (id, reason) in zip(ids, reasons) {
            guard let name = channels[id]?.name.text else { continue }
            refuse(id, refusal(of: name, reason.words, body: reason.body), now)
        }
        if user.stage == .sent, let reason = reasons.last { failSignIn(reason, now) }
    }

    private mutating func failSignIn(_ refusal: PusherRefusals.Refusal, _ now: Instant) {
        let error = RealtimeError(.auth, "the server refused the sign-in: \(refusal.words)")
        failSignIn(PusherSubscriptionFailure(error, body: refusal.body), now)
    }

    /// Fails subscriptions that the server has not answered in time. An answer may still come.
    mutating func failUnanswered(_ now: Instant) {
        while let id = unanswered.popDue(channels, now) {
            guard let entry = channels[id] else { continue }
            let name = entry.name
            let refusal = refusals.take(
                hasSignature: name.needsAuthorization, since: entry.sentAt)
            let hint = refusal.map { "; meanwhile it sent an error without a channel: \($0.words)" }
            let error = RealtimeError(
                .timeout,
                "the server has not answered the subscription of \(name.text.quoted()) for"
                    + " \(PusherConfiguration.answerTimeout.readable)\(hint ?? "")")
            refuse(id, PusherSubscriptionFailure(error, body: refusal?.body), now)
            judgeRefusals(now)
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
