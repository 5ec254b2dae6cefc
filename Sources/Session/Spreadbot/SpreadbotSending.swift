package import Wire

// How each send is transported, and how it ends (docs/spreadbot.md, B14).
extension SpreadbotSession {
    /// Accepts a send. Its result is reported by an action, even if the queue is full.
    package mutating func submit(_ send: SpreadbotSend, now: Instant) {
        guard stage != .idle || !send.isMessage || send.isDurable else {
            let error = RealtimeError(
                .closed, "there is no connection to send on: none was established, or it has ended")
            return report(.sent(send, error))
        }
        if case .closing = stage, send.isMessage, !send.isDurable {
            return report(.sent(send, RealtimeError(.closed, "the connection is closing")))
        }
        sends.append(send)
        pump()
        if sends.waitingCount > configuration.queueCapacity, !send.isDurable { makeRoom() }
    }

    /// Adds a send that an earlier run has left. It goes out in its order, with the next sends.
    package mutating func restore(_ send: SpreadbotSend) { sends.append(send) }

    private mutating func makeRoom() {
        let dropsOldest = configuration.overflow == .dropOldest
        guard let lost = dropsOldest ? sends.dropOldest() : sends.dropNewest() else { return }
        let error = RealtimeError(
            .queueFull,
            "the queue is full: \(configuration.queueCapacity) sends wait"
                + OptionOwner.spreadbot.mention(.queueCapacity))
        report(.sent(lost, error))
    }

    /// Ends a send that waits or is being posted. A frame that the WebSocket has taken is not
    /// affected.
    package mutating func cancel(_ number: UInt64) {
        if let post = sends.posting, post.number == number {
            cancel(post)
            _ = sends.posted()
            finish(post, RealtimeError(.cancelled, "the send was cancelled"))
            return pump()
        }
        guard let send = sends.cancel(number) else { return }
        finish(send, RealtimeError(.cancelled, "the send was cancelled"))
        pump()
    }

    /// Starts each send that may go out now.
    package mutating func pump() {
        if isWebSocketOpen {
            while let send = sends.nextFrame(on: path) { act(.write(send)) }
            if let last = sends.nextConfirmation() { act(.confirm(last)) }
        }
        // Without a network sends wait here, where they are counted and can be cancelled.
        guard attempts.isOnline, postRetry.attempts.wakeUp == nil else { return }
        let isClosing = if case .closing = stage { true } else { false }
        guard !isClosing else { return }
        let (isIdle, isWebSocket, path) = (stage == .idle, isWebSocketOpen, path)
        // Without a connection, requests overtake messages, because there may never be a
        // connection. With a WebSocket, messages for another path go by POST.
        let next = sends.nextRequest(passes: isIdle) {
            !$0.isMessage || !isIdle && !(isWebSocket && $0.isFrame(on: path))
        }
        if let next { act(.post(next)) }
    }

    private var isWebSocketOpen: Bool {
        if case .open = stage { return transport == .webSocket }
        return false
    }

    /// The server answered the ping that followed this send.
    package mutating func confirmed(_ number: UInt64, _ id: SpreadbotSend.ID, now: Instant) {
        guard isCurrent(number) else { return }
        for send in sends.confirmed(id) { finish(send, nil) }
        pump()
    }

    /// The frames up to this one were written, but answers are not read because receiving is
    /// paused.
    package mutating func written(_ number: UInt64, _ id: SpreadbotSend.ID) {
        guard isCurrent(number) else { return }
        for send in sends.written(id) { report(.sent(send, nil)) }
        pump()
    }

    /// Ends a send, and reports the end unless it was reported before.
    mutating func finish(_ send: SpreadbotSend, _ error: RealtimeError?) {
        // The delay before another attempt belonged to this send.
        if postRetry.number == send.number { postRetry = PostRetry(configuration) }
        if send.isReported { act(.forget(send)) } else { report(.sent(send, error)) }
    }

    /// Handles the end of a request.
    /// - Parameters:
    ///   - error: nil if the server accepted it.
    ///   - status: the status of the response; 0 if there is none.
    ///   - retryAfter: how long the server asks to wait.
    ///   - mayPass: another attempt may succeed, so a durable send is repeated.
    package mutating func posted(
        _ id: SpreadbotSend.ID, _ error: RealtimeError?, status: Int, retryAfter: Duration? = nil,
        mayPass: Bool, now: Instant, random: Double
    ) {
        guard let send = sends.posting, send.id == id else { return }
        if let error, mayPass, send.isDurable,
            case .retry(let delay) = postRetry.attempts.ended(
                asked: Attempts.capped(retryAfter), now: now, random: random)
        {
            sends.postAgain()
            postRetry.number = send.number
            report(
                .failed(
                    Failure(
                        error: error, transport: nil, status: status, retryIn: delay,
                        attempt: postRetry.attempts.failures)))
        } else {
            _ = sends.posted()
            postRetry.attempts.forgetFailures()
            finish(send, error)
        }
        pump()
    }

    /// The leg is gone. Frames that were not confirmed may have arrived.
    mutating func loseFrames(_ written: SpreadbotSend.ID) {
        let error = RealtimeError(
            .connectionLost,
            "the connection was lost before the server confirmed the message: it may have arrived,"
                + " or not")
        for send in sends.dropped(written: written) { report(.sent(send, error)) }
    }

    /// Ends messages that wait for a connection. Frames already written are not affected.
    mutating func giveUpWaiting(_ error: RealtimeError) {
        cancelPost()
        for send in sends.closeWaiting() { report(.sent(send, error)) }
    }

    /// Ends messages for the previous path, because another path was established.
    mutating func giveUpMessages() {
        if let post = sends.posting, post.isBoundToConnection { cancel(post) }
        let error = RealtimeError(
            .closed, "the connection was established to another path before it was sent")
        for send in sends.closeMessages() { report(.sent(send, error)) }
    }

    mutating func giveUpAll(_ error: RealtimeError) {
        cancelPost()
        for send in sends.close() { report(.sent(send, error)) }
    }

    private mutating func cancelPost() {
        if let post = sends.posting, post.isMessage { cancel(post) }
    }

    private mutating func cancel(_ post: SpreadbotSend) {
        let isWithdrawn = withdraw {
            if case .post(let send) = $0 { send.id == post.id } else { false }
        }
        if !isWithdrawn { act(.cancelPost(post.id)) }
    }
}
