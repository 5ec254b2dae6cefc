import Foundation
import RealtimeFoundation
import Testing

/// What `dump` shows of objects, and of everything that leads to one: their type, nothing else.
/// Inside there are URLs and authorizations, and thousands of lines about the engine.
@Suite(.timeLimit(.minutes(5))) struct MirrorTests {
    /// Public types that hold only values, which their mirrors may show; SecretTests has those with
    /// secrets.
    private static let values: Set = [
        "Backoff", "DDPBatch", "DDPCallOptions", "DDPChange", "DDPClient.Options",
        "DDPClient.StatusChange", "DDPDocument", "DDPListChange", "DDPListChange.Deletion",
        "DDPListChange.Insertion", "DDPListChange.Move", "DDPListChange.Update",
        "DDPObjectChanges", "DDPObjectChanges.Object", "DDPPublication", "DDPReference",
        "DDPRelationship", "DDPWrites", "EJSONDate", "EJSONDecimal", "EJSONDecoder",
        "EJSONEncoder", "EventSource.Event", "EventSource.Listener", "EventSource.Options",
        "EventStreamParser.Limits", "LongPoll.Message", "LongPoll.Options", "Loop.Statistics",
        "Loop.TimerID", "Network", "Network.ClientCertificate", "Network.Resolve", "NextAttempt",
        "Pusher.Failure", "Pusher.StateChange", "PusherAuth", "PusherClientOptions", "PusherError",
        "PusherEvent",
        "PusherPresenceChannelMember", "PusherUser.WatchlistEvent", "PusherUserAuth",
        "REST.Failure", "REST.ID", "REST.Options", "REST.Request", "REST.Response", "SourceError",
        "Spreadbot.Configuration", "Spreadbot.ErrorEvent", "Spreadbot.Message",
        "WebSocket.Closing", "WebSocket.ErrorEvent", "WebSocket.Handlers", "WebSocket.Options",
        "WebSocket.Piece", "WebSocket.Statistics",
    ]

    /// A mirror is looked at where the object exists only during a call.
    private static let shownInCalls: Set = [
        "DDPModelChanges", "DDPRandomStream", "DDPStub", "WebSocket.MessageWriter",
    ]

    private let secret = "S3cret"

    /// Its name without the module and generic arguments.
    private static func name(_ value: Any) -> String {
        String(reflecting: type(of: value))
            .replacing(/<.*?>(?=\.|$)/, with: "")
            .split(separator: ".").dropFirst().joined(separator: ".")
    }

    private func expectOpaque(_ value: Any, _ location: SourceLocation = #_sourceLocation) {
        var text = ""
        dump(value, to: &text)
        let name = Self.name(value)
        #expect(!text.contains(secret), "\(name)", sourceLocation: location)
        #expect(text.split(separator: "\n").count == 1, "\(name)", sourceLocation: location)
        #expect(!"\(value)".contains("("), "\(name): \(value)", sourceLocation: location)
    }

    @Test func objectsAndWhatLeadsToThemAreOpaque() async throws {
        var shown: Set<String> = []
        for value in try await objects() {
            expectOpaque(value)
            shown.insert(Self.name(value))
        }
        let known = shown.union(Self.values).union(Self.shownInCalls)
        let declared = try declaredTypes()
        #expect(declared.count > 90)
        #expect(declared.subtracting(known).isEmpty, "add new types to this test")
        #expect(Self.values.subtracting(declared).isEmpty, "these are gone")
    }

    private func objects() async throws -> [Any] {
        let streams = StreamServer.shared.url("events/1?token=\(secret)")
        let source = try EventSource(streams, start: false)
        let poll = try LongPoll(streams, start: false)
        let loop = try Loop()
        let reachability = try Reachability(on: loop)
        let server = RESTServer.shared.url.replacing("//", with: "//user:\(secret)@")
        let rest = try REST(server)
        let stream = try await rest.stream(REST.Request("GET", "bytes/1?token=\(secret)"))
        let config = Spreadbot.Configuration(baseURL: "http://user:\(secret)@127.0.0.1:1")
        let spreadbot = try Spreadbot(config: config)
        return try [
            source, source.makeAsyncIterator(), poll, poll.makeAsyncIterator(), source.states,
            source.states.makeAsyncIterator(), EventStreamParser(), loop, Loop.shared,
            reachability, reachability.changes, reachability.changes.makeAsyncIterator(), rest,
            stream, stream.makeAsyncIterator(), spreadbot, spreadbot.messages(path: "a"),
            SpreadbotREST(config: config),
        ] + webSockets() + pushers() + meteorClients()
    }

    private func webSockets() throws -> [Any] {
        let socket = try WebSocket(
            "ws://127.0.0.1:1/?token=\(secret)", handlers: WebSocket.Handlers())
        return [
            socket, socket.messages, socket.messages.makeAsyncIterator(), socket.pieces,
            socket.pieces.makeAsyncIterator(),
        ]
    }

    private func pushers() throws -> [Any] {
        let pusher = Pusher(key: "KEY")
        let channel = pusher.subscribe("private-y", auth: PusherAuth(auth: "KEY:\(secret)"))
        return [
            pusher, pusher.connection, channel, pusher.subscribe("presence-a"),
            pusher.connection.channels, pusher.events(), channel.events(), pusher.user,
            pusher.nativePusher,
        ]
    }

    private func meteorClients() throws -> [Any] {
        var options = DDPClient.Options()
        options.headers = [(name: "X-Token", value: secret)]
        let client = try DDPClient("ws://127.0.0.1:1/?token=\(secret)", options: options)
        let models = try DDPModels(client, Player.self, Avatar.self, Message.self)
        let players = try client.collection("players")
        let changes = try models.changes(Player.self)
        return try [
            client, models, players, players.results(), players.results().makeAsyncIterator(),
            players.changes(), players.changes().makeAsyncIterator(), players.observe { _ in },
            models.objectChanges, models.objectChanges.makeAsyncIterator(), changes,
            changes.makeAsyncIterator(), models.observe(Player.self) { _ in },
            models.observeObjects { _ in }, client.subscribe("all", [.string(secret)]),
            SubscriptionLoader(client), client.send("m", [.string(secret)]),
        ]
    }

    @Test func objectsThatExistDuringCallsAreOpaque() async throws {
        let client = try DDPClient("ws://127.0.0.1:1/?token=\(secret)")
        try client.setStub("m") { stub, _ in
            expectOpaque(stub)
            expectOpaque(stub.randomStream())
            return "shown"
        }
        #expect(try client.send("m").stubValue == "shown")
        let models = try DDPModels(client, Player.self, Avatar.self, Message.self)
        try models.save { changes in expectOpaque(changes) }
        let socket = try await WebSocket.connect(EchoServer.shared.url("echo"))
        try await socket.sendMessage(.text) { message in
            expectOpaque(message)
            try await message.write(secret)
        }
        try await socket.close()
    }

    /// The public classes and structs of the module, from its source.
    private func declaredTypes() throws -> Set<String> {
        let root = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Sources/Realtime").standardizedFileURL
        let files = FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil)
        let declaration =
            /^( *)(?:@\S+ )*(public )?(?:final )?(class|struct|enum|actor|extension) ([A-Z][\w.]*)/
        var found: Set<String> = []
        for case let file as URL in files ?? .init() where file.pathExtension == "swift" {
            var scopes: [String] = []
            for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
                guard let match = line.firstMatch(of: declaration) else { continue }
                scopes = scopes.prefix(match.1.count / 4) + [String(match.4)]
                guard match.2 != nil, match.3 == "class" || match.3 == "struct" else { continue }
                found.insert(scopes.joined(separator: "."))
            }
        }
        return found
    }
}
