import Documents
import Session
import Testing
import Wire

@testable import Engine

/// A Meteor client, and an app of its own on Tests/Support/ddp_server. The test drives the loop.
final class DDPClientHarness {
    let server: DDPSocketHarness
    let client: DDPConnection
    /// What the handlers reported, a line each.
    var lines: [String] = []
    /// What a call of `finish` ended with.
    private var outcome: Result<EJSON, DDPError>?

    init(
        _ settings: JSONValue = [:], _ change: (inout DDPClientConfiguration) -> Void = { _ in }
    ) throws {
        server = try DDPSocketHarness(settings)
        client = try DDPConnection(
            url: server.configuration.address.webSocket.text, on: server.loop)
        try client.configure { options in
            var delays = options.session.delays
            delays.initial = .milliseconds(20)
            options.session.backoff = delays
            change(&options)
        }
        let add: (String) -> Void = { [unowned self] in lines.append($0) }
        try client.setHandlers { handlers in
            handlers.status = { add("\($0.status)") }
            handlers.account = { add(DDPClientHarness.line($0)) }
        }
    }

    func end() {
        client.close()
        try? server.loop.dispatch(timeout: 0)
        server.end()
    }

    private static func line(_ event: DDPAccountEvent) -> String {
        switch event {
        case .user(let id): "user \(id ?? "none")"
        case .loggingIn(let isLoggingIn): "logging in \(isLoggingIn)"
        case .store(let token): "store \(token.userID)"
        case .forget: "forget"
        case .resumeFailed(let error): "resume failed \(error.code)"
        }
    }

    // MARK: The client

    func connect() throws {
        try client.connect()
        try run { client.status == .connected }
    }

    func run(
        until isDone: () -> Bool, _ location: SourceLocation = #_sourceLocation
    ) throws {
        try server.run(until: isDone, location)
    }

    func run(until line: String, _ location: SourceLocation = #_sourceLocation) throws {
        try server.run(until: { lines.contains(line) }, location)
    }

    /// Subscribes, and runs until the subscription is ready.
    @discardableResult
    func subscribe(_ name: String) throws -> DDPSession.SubscriptionHandle {
        let handle = try client.subscribe(name)
        try run { client.isReady(handle) }
        return handle
    }

    /// Handlers that write lines about a call.
    func reporting(_ name: String) -> DDPCallHandlers {
        DDPCallHandlers(
            result: { [unowned self] _ in lines.append("\(name): result") },
            completed: { [unowned self] in lines.append("\(name): \(DDPClientHarness.text($0))") })
    }

    static func text(_ result: Result<EJSON, DDPError>) -> String {
        switch result {
        case .success(let value): value.text
        case .failure(let error): "\(error.kind) \(error.reason ?? "")"
        }
    }

    /// The name of a document of the client; nil if there is none.
    func name(of id: String) -> String? {
        guard let id = DocumentID(.string(id)),
            case .string(let name)? = client.document(
                DocumentKey(collection: "players", id: id))?["name"]
        else { return nil }
        return name
    }

    // MARK: The server

    /// Makes a collection with one document, and a publication of all of them.
    func makePlayers() throws {
        try server.control("collection", ["name": "players"])
        try server.control(
            "insert", ["collection": "players", "many": [["_id": "a", "name": "Ada"]]])
        try server.control(
            "publication", ["name": "all", "cursors": [["collection": "players"]]])
    }

    func rename(_ id: String, to name: String) throws {
        try server.control(
            "update",
            [
                "collection": "players", "id": .string(id),
                "modifier": ["$set": ["name": .string(name)]],
            ])
    }

    /// The names of the server's documents.
    func names() throws -> [String] {
        try server.control("find", ["collection": "players"]).arrayValue?
            .compactMap { $0["name"]?.stringValue } ?? []
    }
}

extension EJSON {
    /// A modifier that sets a name.
    static func naming(_ name: String) -> EJSON {
        var fields = EJSONObject()
        fields["name"] = .string(name)
        var modifier = EJSONObject()
        modifier["$set"] = .object(fields)
        return .object(modifier)
    }

    static func named(_ name: String) -> EJSON {
        var fields = EJSONObject()
        fields["name"] = .string(name)
        return .object(fields)
    }
}
