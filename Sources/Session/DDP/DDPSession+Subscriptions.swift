import Documents
package import Wire

// Subscriptions, and groups of them.
extension DDPSession {
    /// Subscribes. An equal subscription that is there is shared; if it is ready, `ready` follows
    /// at once.
    /// - Parameter keep: how long it is kept after its last use; nil for the default.
    package mutating func subscribe(
        _ name: String, _ params: [EJSON] = [], keep: Duration? = nil,
        drawing source: inout some DDPRandomSource, now: Instant
    ) -> SubscriptionHandle {
        let handle = subscriptions.nextHandle()
        let keep = keep ?? configuration.unusedSubscriptionTime
        guard stage != .failed else {
            report(.stopped(handle, clientEnded))
            return handle
        }
        if let id = subscriptions.matching(name, params) {
            subscriptions.use(id, by: handle, keep: keep)
            if subscriptions[id]?.isReady == true { report(.ready(handle)) }
            return handle
        }
        let id = source.subscriptionID()
        subscriptions.insert(
            DDPSubscription(id: id, name: name, params: params, keep: keep))
        subscriptions.use(id, by: handle, keep: keep)
        if socket != nil { sendSubscription(id, now) }
        return handle
    }

    /// Why nothing begins any more.
    var clientEnded: DDPError {
        DDPError(
            .disconnected,
            reason: failureReason.isEmpty
                ? "the client was closed" : "the client has failed: \(failureReason)")
    }

    private mutating func sendSubscription(_ id: String, _ now: Instant) {
        guard let subscription = subscriptions[id], !subscription.isSent else { return }
        subscriptions.change(id) {
            $0.isSent = true
            $0.wasSent = true
        }
        send(
            DDPWriter.sub(
                id: subscription.id, name: subscription.name, params: subscription.params), now)
    }

    /// Whether a subscription is ready; not after it was released, or has ended.
    package func isReady(_ handle: SubscriptionHandle) -> Bool {
        subscriptions[handle]?.isReady ?? false
    }

    /// Gives a subscription up. After its last use it is kept for a while.
    package mutating func release(_ handle: SubscriptionHandle, now: Instant) {
        loadersForget(handle)
        reportOwnStop(handle)
        guard let subscription = subscriptions.release(handle) else { return }
        guard subscription.keep > .zero else { return drop(subscription.id, now) }
        subscriptions.keepUnused(subscription.id, until: now + subscription.keep)
    }

    /// Gives a subscription up. If nobody else uses it, it ends at once.
    package mutating func stop(_ handle: SubscriptionHandle, now: Instant) {
        loadersForget(handle)
        reportOwnStop(handle)
        if let subscription = subscriptions.release(handle) { drop(subscription.id, now) }
    }

    /// The program gives a subscription up that has not ended.
    private mutating func reportOwnStop(_ handle: SubscriptionHandle) {
        guard configuration.reportsOwnStops, subscriptions[handle] != nil else { return }
        report(.stopped(handle, nil))
    }

    mutating func endUnused(_ now: Instant) {
        for id in subscriptions.takeEnded(now) { drop(id, now) }
    }

    private mutating func drop(_ id: String, _ now: Instant) {
        guard let subscription = subscriptions.remove(id), subscription.wasSent else { return }
        if let socket, subscription.isSent {
            send(DDPWriter.unsub(id: id), now)
            subscriptions.ends(id, on: socket)
        } else {
            subscriptions.dropped.append(id)
        }
    }

    /// Sends all subscriptions on a new connection, then the ends of those that were dropped.
    mutating func sendSubscriptions(_ number: UInt64, _ now: Instant) {
        for subscription in subscriptions.inOrder {
            if subscription.handles.isEmpty {
                drop(subscription.id, now)
            } else {
                sendSubscription(subscription.id, now)
            }
        }
        for id in subscriptions.dropped {
            send(DDPWriter.unsub(id: id), now)
            subscriptions.ends(id, on: number)
        }
        subscriptions.dropped = []
    }

    // MARK: The server

    /// The server has sent the initial documents.
    mutating func subscriptionReady(_ id: String) {
        guard let subscription = subscriptions[id], !subscription.isReady,
            !subscription.isReadyPending
        else { return }
        subscriptions.change(id) { $0.isReadyPending = true }
        whenFlushed(.subscription(id))
    }

    /// And they are in the store.
    mutating func subscriptionVisible(_ id: String, _ now: Instant) {
        keeping.changed(now)
        subscriptions.change(id) {
            $0.isReady = true
            $0.isReadyPending = false
        }
        for handle in subscriptions[id]?.handles ?? [] {
            report(.ready(handle))
            loadersHear(handle, nil)
        }
    }

    /// The server has ended a subscription, or answers our `unsub`.
    mutating func subscriptionEnded(_ id: String, _ error: DDPError?) {
        subscriptions.hasEnded(id)
        guard let subscription = subscriptions.remove(id) else { return }
        for handle in subscription.handles {
            report(.stopped(handle, error))
            loadersHear(
                handle,
                error
                    ?? DDPError(.server, "stopped", reason: "the subscription was stopped"))
        }
    }

    /// The client has ended: no subscription will be ready.
    mutating func failSubscriptions(_ error: DDPError) {
        for subscription in subscriptions.inOrder { subscriptionEnded(subscription.id, error) }
    }

    // MARK: Loaders

    /// Begins a group of subscriptions.
    package mutating func makeLoader() -> LoaderID {
        lastLoader += 1
        loaders[lastLoader] = DDPLoader()
        return lastLoader
    }

    /// Adds a subscription to a group, which releases it at its end.
    package mutating func add(_ handle: SubscriptionHandle, to loader: LoaderID) {
        guard loaders[loader] != nil else { return }
        loaders[loader]?.handles.append(handle)
        guard let subscription = subscriptions[handle] else {
            let error =
                stage == .failed
                ? clientEnded
                : DDPError(.server, "stopped", reason: "the subscription was stopped")
            if loaders[loader]?.error == nil { loaders[loader]?.error = error }
            return
        }
        guard !subscription.isReady else { return }
        loaders[loader]?.pending.insert(handle)
        loadersOfHandle[handle, default: []].append(loader)
    }

    package func isOpen(_ loader: LoaderID) -> Bool { loaders[loader] != nil }

    /// Whether each subscription of the group is ready or has failed.
    package func isReady(loader: LoaderID) -> Bool { loaders[loader]?.pending.isEmpty ?? true }

    /// Asks for `loaded` once each subscription of the group is ready or has failed.
    /// - Returns: whether they all are; `loaded` does not follow then.
    package mutating func whenReady(_ loader: LoaderID) -> Bool {
        guard let group = loaders[loader] else { return false }
        if group.pending.isEmpty { return true }
        loaders[loader]?.isAwaited = true
        return false
    }

    /// The first error of the group's subscriptions.
    package func error(of loader: LoaderID) -> DDPError? { loaders[loader]?.error }

    /// Releases all subscriptions of a group.
    package mutating func closeLoader(_ loader: LoaderID, now: Instant) {
        guard let group = loaders.removeValue(forKey: loader) else { return }
        for handle in group.handles { release(handle, now: now) }
    }

    private mutating func loadersHear(_ handle: SubscriptionHandle, _ error: DDPError?) {
        for loader in loadersOfHandle.removeValue(forKey: handle) ?? [] {
            guard var group = loaders[loader], group.pending.remove(handle) != nil else { continue }
            if group.error == nil { group.error = error }
            if group.pending.isEmpty, group.isAwaited {
                group.isAwaited = false
                report(.loaded(loader, group.error))
            }
            loaders[loader] = group
        }
    }

    /// The application has released a subscription by itself.
    private mutating func loadersForget(_ handle: SubscriptionHandle) {
        guard loadersOfHandle[handle] != nil else { return }
        loadersHear(handle, nil)
    }
}
