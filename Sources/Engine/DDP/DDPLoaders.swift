package import Session
package import Wire

// Groups of subscriptions that are waited for together.
extension DDPConnection {
    /// Subscribes to several publications, and waits for them.
    /// - Parameter loaded: called once they are all ready, or have failed.
    /// - Returns: the loader, which releases them when it is closed.
    package func load(
        _ wanted: [(name: String, params: [EJSON])], _ loaded: @escaping DDPLoadHandler
    ) throws(RealtimeError) -> DDPSession.LoaderID {
        try checkOpen()
        for (_, params) in wanted {
            for value in params { try value.checkDepth("a parameter") }
        }
        let handler = DDPSendable(loaded)
        return change { shared in
            let loader = shared.session.makeLoader()
            for (name, params) in wanted { subscribe(name, params, for: loader, shared) }
            if shared.session.whenReady(loader) {
                let error = shared.session.error(of: loader)
                loop.enqueue { [self] in if !isClosed { handler.value(error) } }
            } else {
                shared.loaders[loader] = [handler.value]
            }
            return loader
        }
    }

    /// Begins a group without subscriptions.
    package func makeLoader() throws(RealtimeError) -> DDPSession.LoaderID {
        try checkOpen()
        return change { $0.session.makeLoader() }
    }

    /// Subscribes to another publication of a group.
    /// - Throws: `.closed` once the group is closed.
    package func add(
        _ name: String, _ params: [EJSON], to loader: DDPSession.LoaderID
    ) throws(RealtimeError) {
        try checkOpen()
        for value in params { try value.checkDepth("a parameter") }
        try change { shared throws(RealtimeError) in
            try check(loader, shared)
            subscribe(name, params, for: loader, shared)
        }
    }

    private func check(
        _ loader: DDPSession.LoaderID, _ shared: DDPSharedSession
    ) throws(RealtimeError) {
        guard shared.session.isOpen(loader) else {
            throw RealtimeError(.closed, "the loader is closed")
        }
    }

    private func subscribe(
        _ name: String, _ params: [EJSON], for loader: DDPSession.LoaderID,
        _ shared: DDPSharedSession
    ) {
        let handle = shared.session.subscribe(
            name, params, drawing: &shared.entropy, now: Loop.now())
        shared.session.add(handle, to: loader)
    }

    /// Waits for all subscriptions that a group has now, and those that are added meanwhile.
    /// - Returns: whether there is nothing to wait for: the handler is not called then.
    /// - Throws: `.closed` once the group is closed.
    package func whenReady(
        _ loader: DDPSession.LoaderID, _ loaded: @escaping DDPLoadHandler
    ) throws(RealtimeError) -> Bool {
        try checkOpen()
        let handler = DDPSendable(loaded)
        return try change { shared throws(RealtimeError) in
            try check(loader, shared)
            guard !shared.session.whenReady(loader) else { return true }
            shared.loaders[loader, default: []].append(handler.value)
            return false
        }
    }

    /// Whether all subscriptions of a group are ready or have failed.
    package func isReady(loader: DDPSession.LoaderID) -> Bool {
        read { $0.session.isReady(loader: loader) }
    }

    /// The first error of a group's subscriptions.
    package func error(of loader: DDPSession.LoaderID) -> DDPError? {
        read { $0.session.error(of: loader) }
    }

    package func closeLoader(_ loader: DDPSession.LoaderID) throws(RealtimeError) {
        try checkOpen()
        let old = change { shared in
            shared.session.closeLoader(loader, now: Loop.now())
            return DDPSendable(shared.loaders.removeValue(forKey: loader))
        }
        withExtendedLifetime(old) {}
    }
}
