import Session
package import Wire

// What a Pusher connection tells the application: events, in the order of the wire, and what its
// session reports.
extension PusherConnection {
    /// Handles a message of the socket.
    func receive(_ kind: MessageKind, _ bytes: UnsafeRawBufferPointer, _ socket: WebSocketLeg) {
        guard socket === self.socket, !isClosed else { return }
        guard kind == .text else {
            return debug("a binary message of \(bytes.count) bytes is ignored")
        }
        if handlers.debug != nil { debugMessage("received", bytes) }
        do throws(RealtimeError) {
            let isHandled = try reader.read(bytes) { envelope -> Bool in
                switch session.received(envelope, on: socketNumber, now: Loop.now()) {
                case .handled: return true
                case .deliver(let number, let channel):
                    deliver(PusherEventView(envelope), number, channel)
                    return false
                }
            }
            if isHandled { act() }
        } catch {
            unreadable(session.secrets.redacted(error))
            act()
        }
    }

    /// A message that is not read: one that is too large ends the connection, another one is
    /// skipped.
    private func unreadable(_ error: RealtimeError) {
        guard error.code == .tooLarge else {
            Log.write(.debug, "a message of the Pusher server is skipped: \(error.message)")
            return session.receivedMalformed(error, on: socketNumber, now: Loop.now())
        }
        let server = session.url?.displayName ?? "the server"
        let limit = OptionOwner.pusher.mention(.maxMessageBytes)
        ended(socketNumber, PusherSocketEnd(error: error.tooLarge(from: server, limit)))
    }

    /// Calls the handlers of an event: those of the connection, then those of its channel. Handlers
    /// that they bind wait for the next event.
    @inline(__always)
    private func deliver(
        _ view: PusherEventView, _ number: PusherSession.ChannelID?,
        _ registration: (any PusherRegistration)?
    ) {
        if number != nil, registration == nil { return }
        let channel = registration.map { handle($0) }
        let ofAll = bindings.handlers(of: view.event)
        let ofChannel = channel?.bindings.handlers(of: view.event)
        ofAll.call(view, channel, gate)
        ofChannel?.call(view, channel, gate)
        if copy.value != nil { copy.value = nil }
        if let inbox, !isClosed { keep(ReceivedMemory(view, channel: number ?? 0), in: inbox) }
        guard handlers.events != nil, !isClosed else { return }
        batch.append(view, channel: number ?? 0)
        if batch.isFull { deliverBatch() } else { schedule() }
    }

    func deliverBatch() {
        guard !batch.isEmpty else { return }
        guard let events = handlers.events else { return batch.removeAll() }
        var taken = PusherBatch()
        swap(&taken, &batch)
        taken.take(events)
        // Its storage is used again.
        if batch.isEmpty { swap(&taken, &batch) }
    }

    // MARK: The session's reports

    func report(_ report: PusherSession.Report) {
        switch report {
        case .stateChanged(let change): self.report(change)
        case .failed(let error):
            let code = error.code.map { " \($0)" } ?? ""
            Log.write(.warning, "the Pusher server reports an error\(code)")
            handlers.error?(error)
        case .event(let event, let number):
            let channel = number.flatMap { session.registration(of: $0) }
            PusherEventView.of(event) { deliver($0, number, channel) }
        case .userEvent(let event):
            PusherEventView.of(event) {
                userBindings.handlers(of: $0.event).call($0, nil, gate)
            }
            copy.value = nil
        case .signedIn(let id, let data): handlers.signedIn?(id, Array(data.utf8))
        case .signInFailed(let failure):
            Log.write(.warning, "the sign-in failed: \(failure.error.message)")
            handlers.signInFailed?(failure)
        case .signInAnswered(let calls, let failure):
            for call in calls where !isClosed { call.answered(failure) }
        case .signedOut: break
        case .watchlist(let event): handlers.watchlist?(event)
        case .channel(let number, let report):
            if let channel = channel(number) { self.report(report, on: channel) }
        case .log(let line): debug(line)
        }
    }

    private func report(_ change: PusherStateChange) {
        publish { $0.state = change.new }
        if change.new == .connected { pauseChanged() }
        let retry =
            change.retryIn.map { ", next attempt \($0.fromNow)" } ?? ""
        let why = change.error.map { ": \($0.message)" } ?? ""
        Log.write(
            change.error == nil ? .info : .warning,
            "the Pusher connection is \(change.new.name)\(retry)\(why)")
        debug("\(change.old.name) → \(change.new.name)\(retry)\(why)")
        handlers.state?(change)
    }

    private func report(
        _ report: PusherSession.ChannelReport, on channel: PusherChannelHandle
    ) {
        switch report {
        case .state(let state): channel.publish { $0.state = state }
        case .members(let change): channel.publish { $0.members.apply(change) }
        case .count(let count):
            channel.publish { $0.subscriptionCount = count }
            handlers.subscriptionCount?(channel, count)
        case .subscribed:
            debug("subscribed to \(channel.name)")
            handlers.subscribed?(channel)
        case .failed(let failure):
            let line = "the subscription of \(channel.name) failed: \(failure.error.message)"
            Log.write(.warning, line)
            debug(line)
            handlers.subscriptionFailed?(channel, failure)
        case .memberAdded(let member): handlers.memberAdded?(channel, member)
        case .memberRemoved(let member): handlers.memberRemoved?(channel, member)
        case .decryptionFailed(let event, let data):
            Log.write(.warning, "an event of \(channel.name) could not be decrypted")
            handlers.decryptionFailed?(channel, event, data)
        case .triggerFailed(let event, let error):
            Log.write(.warning, "a client event of \(channel.name) is dropped: \(error.message)")
            handlers.triggerFailed?(channel, event, error)
        }
    }

    // MARK: The debug log

    /// Passes a line to the caller's log. It must not contain a secret.
    func debug(_ line: @autoclosure () -> String) {
        // Text of the server must not control the terminal on which a log is read.
        handlers.debug?("[PUSHER DEBUG] \(line())".withoutControls)
    }

    func debugMessage(_ what: String, _ message: [UInt8]) {
        guard handlers.debug != nil else { return }
        message.withUnsafeBytes { debugMessage(what, $0) }
    }

    private func debugMessage(_ what: String, _ message: UnsafeRawBufferPointer) {
        debug("\(what): \(session.secrets.redacted(PusherRedaction.text(of: message)))")
    }

    // MARK: Bound handlers; any thread

    /// Binds a handler to an event of any channel, or to all events.
    /// - Parameters:
    ///   - event: nil for all.
    ///   - ended: called once, when the handler is unbound.
    /// - Returns: its number in `bindings`.
    package func bind(
        _ event: String?, ended: (() -> Void)? = nil, _ handle: @escaping PusherHandler
    ) throws(RealtimeError) -> UInt64 {
        try bind(event, ended, handle, in: bindings)
    }

    /// Binds a handler to an event of the signed-in user, or to all of them.
    /// - Returns: its number in `userBindings`.
    package func bindUser(
        _ event: String?, ended: (() -> Void)? = nil, _ handle: @escaping PusherHandler
    ) throws(RealtimeError) -> UInt64 {
        try bind(event, ended, handle, in: userBindings)
    }

    private func bind(
        _ event: String?, _ ended: (() -> Void)?, _ handle: @escaping PusherHandler,
        in bindings: PusherBindings<PusherChannelHandle>
    ) throws(RealtimeError) -> UInt64 {
        try checkOpen()
        let id = newBinding()
        guard bindings.add(id, event, ended: ended, handle) else {
            throw RealtimeError(.closed, "the connection is closed")
        }
        return id
    }
}
