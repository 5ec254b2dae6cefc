internal import Engine
internal import Session
import Synchronization
import Wire

// The functions that the engine calls, on the loop's thread.
extension PusherDispatcher {
    func addHandlers(_ authorizer: PusherAuthorizer) {
        // Fails if the loop has ended; then no handler is called anyway.
        try? connection?.setHandlers { handlers in
            authorizer.addHandlers(to: &handlers)
            addChannelHandlers(to: &handlers)
            addUserHandlers(to: &handlers)
            handlers.state = { [self] in notify(Pusher.StateChange($0)) }
            handlers.error = { [self] in notify(PusherError($0)) }
        }
    }

    /// The engine's form of a handler, which runs on the actor to which it is isolated, or on the
    /// user's executor. After `unbind` it is not called any more, even if a call waits for that.
    func bound(_ handler: Handler<@Sendable (PusherEvent) -> Void>) -> PusherHandler {
        { [self] view, channel, binding in
            let event = event(view, channel)
            run(on: handler.isolation, count: event.count) {
                if binding.isBound { handler.call(event) }
            }
        }
    }

    func channel(_ handle: PusherChannelHandle) -> PusherChannel? {
        handle.companion as? PusherChannel
    }

    /// The event for which the engine is calling a handler; all of its handlers get the same copy.
    func event(_ view: PusherEventView, _ channel: PusherChannelHandle?) -> PusherEvent {
        if let copy = copy?.value {
            return PusherEvent(unsafeDowncast(copy, to: PusherEvent.Copy.self))
        }
        let copy = PusherEvent.Copy(view, channel)
        self.copy?.value = copy
        return PusherEvent(copy)
    }

    private func addChannelHandlers(to handlers: inout PusherHandlers) {
        handlers.subscribed = { [self] in
            if let channel = channel($0) { notify(subscribed: channel) }
        }
        handlers.subscriptionFailed = { [self] handle, failure in
            if let channel = channel(handle) { notify(Pusher.Failure(failure), of: channel) }
        }
        handlers.memberAdded = { [self] handle, member in
            guard let channel = channel(handle) else { return }
            notify(PusherPresenceChannelMember(member), channel, \.memberAdded)
        }
        handlers.memberRemoved = { [self] handle, member in
            guard let channel = channel(handle) else { return }
            notify(PusherPresenceChannelMember(member), channel, \.memberRemoved)
        }
        handlers.subscriptionCount = { [self] handle, count in
            if let channel = channel(handle) { notify(count, channel, \.countChanged) }
        }
        handlers.decryptionFailed = { [self] handle, event, data in
            guard let channel = channel(handle) else { return }
            let text = data.map { String(decoding: $0, as: UTF8.self) }
            notify(undecryptable: event, text, of: channel)
        }
        handlers.triggerFailed = { [self] handle, _, error in
            report(error, channel: handle.name)
        }
    }

    private func addUserHandlers(to handlers: inout PusherHandlers) {
        handlers.signedIn = { [self] id, data in
            let text = String(decoding: data, as: UTF8.self)
            call(\.signedIn) { $0(id, text) }
        }
        handlers.signInFailed = { [self] failure in
            let failure = Pusher.Failure(failure)
            call(\.signInFailed) { $0(failure) }
        }
        handlers.watchlist = { [self] event in
            let event = PusherUser.WatchlistEvent(name: event.name, userIds: event.userIDs)
            call(\.watchlist) { $0(event) }
        }
    }

    func addHandlers(to push: PushInterests) {
        // Fails if the loop has ended; then no handler is called anyway.
        try? push.setHandlers { handlers in
            handlers.registered = { [self] id in
                delegate { $0.registeredForPushNotifications(clientId: id) }
                call(\.registration) { $0(.success(id)) }
            }
            handlers.registrationFailed = { [self] error in
                let body = error.response.map { String(decoding: $0.body, as: UTF8.self) }
                delegate {
                    $0.failedToRegisterForPushNotifications(
                        response: error.response, responseBody: body)
                }
                call(\.registration) { $0(.failure(error)) }
            }
            handlers.done = { [self] call in notify(NativePusher.Change(call)) }
            handlers.failed = { [self] change, error in
                let change = NativePusher.Change(change)
                call(\.interests) { $0(change, error) }
            }
        }
    }

    private func notify(_ change: NativePusher.Change) {
        delegate { delegate in
            switch change {
            case .subscribe(let name): delegate.subscribedToInterest(name: name)
            case .unsubscribe(let name): delegate.unsubscribedFromInterest(name: name)
            case .setSubscriptions(let names): delegate.subscribedToInterests(interests: names)
            }
        }
        call(\.interests) { $0(change, nil) }
    }

    /// Sets whether the engine makes lines for `debugLog`, which costs time for each message.
    /// - Parameter forDelegate: whether the delegate may want them.
    func setDebugHandler(forDelegate: Bool) {
        let isWanted = forDelegate || state.withLock { $0.debug != nil }
        try? connection?.setHandlers { handlers in
            handlers.debug = isWanted ? { [self] in notify($0) } : nil
        }
    }
}
