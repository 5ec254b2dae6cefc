import Wire

/// The sign-in of the user.
struct PusherSignIn: Sendable {
    enum Stage: Equatable {
        /// Not wanted, or not connected.
        case none
        case authorizing(request: UInt64)
        /// The server has not answered yet.
        case sent
        case signedIn(id: String)
        case failed
    }

    /// A subscription of a user's channel.
    struct Subscription: Sendable {
        let sentAt: Instant
        /// The number of the first ping after it.
        let fence: UInt64
    }

    /// The application wants it on each connection.
    var isWanted = false
    var stage = Stage.none
    /// The user of the last sign-in that was sent on this connection; nil if none was. If it failed
    /// without being refused for certain, the server may still confirm it.
    var sentID: String?
    /// The server has confirmed the channel of the user.
    var isSubscribed = false
    /// The subscriptions of users' channels that the server has not answered, by channel. They stay
    /// when their user is signed out.
    var awaited = ByteTable<Subscription>()
    /// The channel of the user is subscribed again if a ping shows that the server does not answer
    /// an earlier subscription.
    var isHeld = false
    /// When the sign-ins were sent that the server has not answered, the oldest first. Those that
    /// the application has ended count as well, because their answers may still come.
    var sentAt: [Instant] = []
    /// The calls that wait for the result, in their order.
    var calls: [any PusherSignInCall] = []
    /// So many of them have seen the connection end, and fail unless it is made again at once.
    var endedCalls = 0

    /// The time limit for the oldest of them.
    var due: Instant? { sentAt.first.map { $0 + PusherConfiguration.answerTimeout } }

    /// The server has answered the oldest one.
    mutating func answered() { if !sentAt.isEmpty { sentAt.removeFirst() } }

    /// The user that is signed in.
    var id: String? {
        if case .signedIn(let id) = stage { return id }
        return nil
    }

    var isPending: Bool {
        switch stage {
        case .authorizing, .sent: true
        case .none: isWanted
        case .signedIn, .failed: false
        }
    }
}

extension PusherSession {
    /// The user that is signed in; nil if none is.
    package var userID: String? { user.id }

    /// Signs the user in, on this connection and on all that follow.
    /// - Parameter call: gets the next result; nil if nobody waits for it.
    package mutating func signIn(_ call: (any PusherSignInCall)? = nil, now: Instant) {
        user.isWanted = true
        if let call { user.calls.append(call) }
        if user.id != nil { return answerSignIns(nil) }
        if user.stage == .failed { user.stage = .none }
        signInIfWanted(now)
    }

    /// Forgets the user. The server has no message for this: it keeps the user until the connection
    /// ends, but no event for the user is delivered any more.
    package mutating func signOut(now: Instant) {
        let isAwaited = user.isPending
        user.isWanted = false
        // Before its success, the channel is unsubscribed when that comes.
        if let id = user.id, user.isSubscribed { send(PusherMessage.unsubscribe(userChannel(id))) }
        endSignIn()
        if isAwaited {
            let error = RealtimeError(.cancelled, "the user was signed out")
            reportFailedSignIn(PusherSubscriptionFailure(error))
        }
        failWaiting(RealtimeError(.auth, "the user was signed out"))
        // They were authorized for this user.
        for id in channels.ordered { _ = channels[id]?.takeWaitingAnswer() }
    }

    mutating func signInIfWanted(_ now: Instant) {
        guard connection != nil, user.isWanted, user.stage == .none else { return }
        user.stage = .authorizing(request: request(.user, of: []))
    }

    mutating func userAuthorized(_ outcome: PusherAuthorizationOutcome, _ now: Instant) {
        switch outcome {
        case .user(let answer):
            guard let id = PusherSignedInUser.id(in: answer.userData) else {
                let error = RealtimeError(
                    .auth, "the user data has no \"id\" that is a string and not empty")
                return failSignIn(PusherSubscriptionFailure(error), now)
            }
            user.stage = .sent
            user.sentID = id
            user.sentAt.append(now)
            noteAuthorization(answer.auth)
            send(PusherMessage.signIn(answer))
        case .failed(let error): failSignIn(PusherSubscriptionFailure(error), now)
        case .channels:
            let error = RealtimeError(.auth, "the request for the user was answered for a channel")
            failSignIn(PusherSubscriptionFailure(error), now)
        }
    }

    mutating func signInSucceeded(_ envelope: PusherEnvelope, _ now: Instant) {
        report(.event(PusherEvent(envelope), nil))
        // The only one must be the answer for this user.
        let isOnly = user.stage == .sent && user.sentAt.count == 1
        if !isOnly { user.answered() }
        defer { judgeRefusals(now) }
        guard user.isWanted, let sent = user.sentID, user.id == nil else {
            return log("signed in without having asked for it")
        }
        let confirmed: PusherSignedInUser
        do throws(RealtimeError) {
            confirmed = try PusherSignedInUser(envelope.data)
        } catch {
            guard user.stage == .sent else { return log(error.message) }
            if isOnly { user.answered() }
            return failSignIn(PusherSubscriptionFailure(error), now)
        }
        // The answer to an earlier sign-in, which the application has ended.
        guard confirmed.id.utf8.elementsEqual(sent.utf8) else {
            return log("the server has confirmed another user than that of the last sign-in")
        }
        // The sign-in may have failed by an error that meant something else, or by the time limit.
        if case .authorizing(let number) = user.stage { cancelRequest(number) }
        if isOnly { user.answered() }
        user.stage = .signedIn(id: confirmed.id)
        let channel = userChannel(confirmed.id)
        channels.addUser(channel)
        report(.signedIn(userID: confirmed.id, userData: confirmed.userData))
        answerSignIns(nil)
        subscribeUser(channel, now)
        for id in channels.ordered where channels[id]?.waitsForUser ?? false {
            guard let answer = channels[id]?.takeWaitingAnswer() else { continue }
            use(answer, for: id, now)
        }
    }

    /// Subscribes the channel of the user. If the same was sent for an earlier sign-in and not
    /// answered yet, the answer counts for this one; if a ping shows that none comes, it is sent
    /// again.
    private mutating func subscribeUser(_ channel: String, _ now: Instant) {
        if let earlier = user.awaited[channel], earlier.fence > fences.answered,
            now - earlier.sentAt < PusherConfiguration.answerTimeout
        {
            user.isHeld = true
            if earlier.fence > fences.sent { sendPing() }
            return
        }
        user.isHeld = false
        user.awaited[channel] = PusherSignIn.Subscription(sentAt: now, fence: fences.next)
        send(PusherMessage.subscribe(channel, nil))
    }

    /// The server has answered a ping.
    mutating func subscribeUserAgain(_ now: Instant) {
        guard user.isHeld, !user.isSubscribed, let id = user.id else { return }
        subscribeUser(userChannel(id), now)
    }

    mutating func failSignIn(_ failure: PusherSubscriptionFailure, _ now: Instant) {
        user.stage = .failed
        report(.event(PusherEvent(failure, named: "pusher:signin_error"), nil))
        reportFailedSignIn(failure)
        failWaiting(failure.error)
        judgeRefusals(now)
    }

    private mutating func reportFailedSignIn(_ failure: PusherSubscriptionFailure) {
        report(.signInFailed(failure))
        answerSignIns(failure)
    }

    private mutating func answerSignIns(_ failure: PusherSubscriptionFailure?) {
        let calls = exchange(&user.calls, with: [])
        user.endedCalls = 0
        if !calls.isEmpty { report(.signInAnswered(calls, failure)) }
    }

    /// Fails the calls that have seen the connection end. By then the application had the
    /// opportunity to connect again.
    mutating func failEndedSignIns() {
        guard user.endedCalls > 0 else { return }
        let calls = Array(user.calls.prefix(user.endedCalls))
        user.calls.removeFirst(user.endedCalls)
        user.endedCalls = 0
        let error = failure ?? RealtimeError(.closed, "the connection was disconnected")
        report(.signInAnswered(calls, PusherSubscriptionFailure(error)))
    }

    /// Channels that waited for the user cannot be subscribed.
    private mutating func failWaiting(_ error: RealtimeError) {
        for id in channels.ordered where channels[id]?.state == .authorizing {
            guard let answer = channels[id]?.takeWaitingAnswer() else { continue }
            failWithoutUser(id, answer, error)
        }
    }

    /// A channel that needs a user has failed. It is tried again as soon as a user is signed in.
    mutating func failWithoutUser(
        _ id: ChannelID, _ answer: PusherAuthorizationAnswer, _ error: RealtimeError
    ) {
        fail(id, PusherSubscriptionFailure(error))
        channels[id]?.answer = answer
        channels[id]?.waitsForUser = true
    }

    mutating func checkSignIns(_ now: Instant) {
        while let due = user.due, due <= now {
            user.answered()
            // An error without a channel may have been the answer.
            _ = refusals.take(hasSignature: true, since: nil)
            if user.stage == .sent, user.sentAt.isEmpty { failSilentSignIn(now) }
            judgeRefusals(now)
        }
    }

    private mutating func failSilentSignIn(_ now: Instant) {
        let error = RealtimeError(
            .timeout,
            "the server has not answered the sign-in for"
                + " \(PusherConfiguration.answerTimeout.readable)")
        failSignIn(PusherSubscriptionFailure(error), now)
    }

    /// The connection has ended, and with it the sign-in.
    mutating func releaseUser() {
        endSignIn()
        user.awaited.removeAll()
        user.sentAt = []
    }

    private mutating func endSignIn() {
        if case .authorizing(let number) = user.stage { cancelRequest(number) }
        if let id = user.id {
            channels.removeUser(userChannel(id))
            report(.signedOut)
        }
        user.stage = .none
        user.sentID = nil
        user.isSubscribed = false
        user.isHeld = false
    }

    private func userChannel(_ id: String) -> String { PusherChannelName.serverToUser(id).text }
}
