import Realtime
import Synchronization

/// Prints what a Meteor server sends. Everything is written on the loop's thread, so the output has
/// the order of the events.
final class DDPView: Sendable {
    enum Shown: Sendable {
        /// All changes of all documents, as lines.
        case everything
        /// The changes of a query's result, as lines.
        case query(DDPQuery)
        /// The query's result, as a table on the terminal.
        case table(DDPQuery)
    }

    private struct State {
        var wasConnected = false
        /// Nobody wants a connection any more.
        var isLeaving = false
        var isEnded = false
        var query: DDPLiveQuery?
        var subscription: DDPSubscription?
    }

    private let console: Console
    private let completion: Completion
    private let shown: Shown
    /// The collections whose documents are events.
    private let streams: [String]
    private let address: DDPAddress
    private let left: Countdown
    private let table: DDPTable?
    private let state = Mutex(State())

    init(
        _ console: Console, _ completion: Completion, _ shown: Shown, streams: [String],
        url: String, count: Int?
    ) {
        self.console = console
        self.completion = completion
        self.shown = shown
        self.streams = streams
        address = DDPAddress(url)
        left = Countdown(count)
        if case .table(let query) = shown { table = DDPTable(query) } else { table = nil }
    }

    /// Says with an error what failed.
    func during<Value: Sendable>(
        _ action: DDPFailure.Action, _ work: () async throws -> Value
    ) async throws -> Value {
        do {
            return try await work()
        } catch let error as DDPError {
            throw DDPFailure(action: action, server: address.server, error: error)
        }
    }

    // MARK: Connecting

    /// - Parameter asksAgain: a login follows, so that it does not matter whether the one of the
    ///   token's file succeeds.
    func connect(_ client: DDPClient, asksAgain: Bool) throws {
        switch shown {
        case .everything: break
        case .query(let query), .table(let query):
            let collection = try client.collection(query.collection)
            // A query with a fault ends the command before it connects and logs in.
            _ = try collection.find(query.selector, options: query.options)
            table?.begin {
                (try? collection.find(query.selector, options: query.options)) ?? []
            }
        }
        client.onStatus { [weak client] change in
            if let client { self.show(change, client) }
        }
        client.onAccount { change in
            switch change {
            case .user(let id):
                self.note(
                    id.map { "logged in, user id \($0)" } ?? "logged out",
                    JSONLine("user").with("id", id))
            case .resumeFailed(let error) where !asksAgain:
                let server = self.address.server
                self.completion.end(DDPFailure(action: .resume, server: server, error: error))
            case .resumeFailed, .loggingIn: break
            }
        }
        client.onRefused { reason, _ in
            self.note(
                "the server did not understand a message: \(reason)",
                JSONLine("refused").with("message", reason))
        }
        try client.connect()
    }

    /// How many attempts are made before the first connection: by WebSocket, and by SockJS.
    private static let firstAttempts = 2

    private func show(_ change: DDPClient.StatusChange, _ client: DDPClient) {
        let (wasConnected, isLeaving) = state.withLock { state in
            if change.status == .connected { state.wasConnected = true }
            return (state.wasConnected, state.isLeaving)
        }
        if isLeaving {
            if change.status == .offline { completion.end() }
            return
        }
        // Then it waits for the network.
        let isOffline = change.status == .offline
        if let error = change.error, !wasConnected, !isOffline,
            change.status == .failed || isFinal(error, change.retryCount)
        {
            completion.end(DDPUnreachable(error: error, address: address))
            // Otherwise another attempt would follow.
            return stop(client)
        }
        if change.status == .failed {
            let error = change.error ?? RealtimeError(.handshake, change.reason)
            return completion.end(error)
        }
        note(change, wasConnected || isOffline ? "trying again" : "trying SockJS")
    }

    /// Whether an error before the first connection is the end. A WebSocket that a proxy blocks is
    /// followed by an attempt with SockJS.
    private func isFinal(_ error: RealtimeError, _ attempts: Int) -> Bool {
        switch error.code {
        case .resolve, .connect, .tls: true
        default: attempts >= DDPView.firstAttempts
        }
    }

    private func note(_ change: DDPClient.StatusChange, _ what: String) {
        let again = "\(what) \(Console.when(change.retryIn))"
        let cause = change.error?.message ?? "the connection was lost"
        let isWaiting = change.status == .waiting || change.error != nil
        if isWaiting, let time = change.retryIn {
            table?.say(in: time) { "\(what) in \($0) s: \(cause)" }
        } else {
            table?.say(
                isWaiting ? "\(again): \(cause)" : change.status == .connected ? nil : "connecting")
        }
        note(
            isWaiting ? "\(cause); \(again)" : "\(change.status)",
            JSONLine("status").with("status", "\(change.status)")
                .with("code", change.error.map { "\($0.code)" })
                .with(message: change.error?.message).with("delay_ms", change.retryIn))
    }

    /// On a terminal, the table is where remarks would be.
    private func note(_ text: @autoclosure () -> String, _ object: @autoclosure () -> JSONLine) {
        if table == nil, !completion.isOver { console.note(text(), object()) }
    }

    // MARK: Showing

    func show(result: EJSON) {
        console.emit(result.text, JSONLine("result").with("result", result))
        completion.end()
    }

    /// Subscribes, and shows documents from then on.
    /// - Parameter limit: how long the initial documents may take.
    func subscribe(
        _ client: DDPClient, _ name: String, _ params: [EJSON], _ limit: Duration?,
        endsWhenReady: Bool
    ) async throws {
        try observe(client)
        let server = address.server
        let subscription = try client.subscribe(name, params) { error in
            guard let error else { return self.completion.end() }
            let subscription = self.state.withLock { $0.subscription }
            Task {
                // At once: it has been ready, or never will be.
                let wasReady = (try? await subscription?.ready()) != nil
                let action = wasReady ? DDPFailure.Action.subscribed(name) : .sub(name)
                self.completion.end(DDPFailure(action: action, server: server, error: error))
            }
        }
        state.withLock { $0.subscription = subscription }
        let timer = Task {
            guard let limit else { return }
            try await Task.sleep(for: limit)
            let fault = "has not sent all documents of \(name) within \(limit); see --max-time"
            completion.end(RealtimeError(.timeout, "\(server) \(fault)"))
        }
        defer { timer.cancel() }
        try await during(.sub(name)) { try await subscription.ready() }
        table?.isComplete()
        note("\(name) is ready", JSONLine("ready").with("name", name))
        if endsWhenReady { completion.end() }
    }

    private func observe(_ client: DDPClient) throws {
        for name in streams { try client.setStream(name) { self.show([$0]) } }
        switch shown {
        case .everything: client.onChanges { self.show($0) }
        case .query(let query):
            let live = try client.collection(query.collection)
                .observe(query.selector, options: query.options) { self.show($0) }
            state.withLock { $0.query = live }
        case .table(let query):
            guard let table else { return }
            client.onChanges { changes in
                for change in changes where change.collection != query.collection {
                    table.sees(change.collection)
                }
            }
            let collection = try client.collection(query.collection)
            let live = try collection.observe(query.selector, options: query.options) { changes in
                table.update()
                for _ in changes where self.left.countsDown() { self.completion.end() }
            }
            state.withLock { $0.query = live }
        }
    }

    private func show(_ changes: [DDPChange]) {
        for change in changes {
            guard !left.isOver, !completion.isOver else { return }
            console.emit(change.line, change.object)
            if left.countsDown() { completion.end() }
        }
    }

    // MARK: The end

    /// Ctrl-C: the connection is closed properly.
    func leave(_ client: DDPClient) {
        state.withLock { $0.isLeaving = true }
        if client.status == .offline { return completion.end() }
        try? client.disconnect()
    }

    /// Closes the connection, and gives the terminal back.
    func finish(_ client: DDPClient) {
        stop(client)
        table?.end()
    }

    private func stop(_ client: DDPClient) {
        state.withLock { $0.isLeaving = true }
        try? client.disconnect()
    }
}

extension DDPChange {
    /// For people: the id and the fields are not always unambiguous.
    fileprivate var line: String {
        let words = [kind.name, collection, id.shown]
        switch kind {
        case .added: return (words + [EJSON.object(fields).text]).joined(separator: " ")
        case .changed:
            let gone = cleared.isEmpty ? [] : ["without \(cleared.joined(separator: ", "))"]
            return (words + [EJSON.object(fields).text] + gone).joined(separator: " ")
        case .removed: return words.joined(separator: " ")
        case .moved:
            return (words + [before.map { "before \($0.shown)" } ?? "to the end"])
                .joined(separator: " ")
        }
    }

    fileprivate var object: JSONLine {
        let line = JSONLine(kind.name).with("collection", collection).with("id", id)
        switch kind {
        case .added: return line.with("fields", .object(fields)).with("before", before)
        case .changed:
            return line.with("fields", .object(fields))
                .with("cleared", cleared.isEmpty ? nil : cleared)
        case .removed: return line
        case .moved: return line.with("before", before ?? .null)
        }
    }
}

extension DDPChange.Kind {
    fileprivate var name: String {
        switch self {
        case .added: "added"
        case .changed: "changed"
        case .removed: "removed"
        case .moved: "moved"
        }
    }
}
