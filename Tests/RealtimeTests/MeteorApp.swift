import Realtime

/// An app of its own on `Tests/Support/ddp_server`.
struct MeteorApp: Sendable {
    let url: String
    private let id: String

    private static let server: (port: Int, rest: REST) = {
        let parts = Peer.start("Tests/Support/ddp_server")
        guard parts.count == 3, let port = Int(parts[0]),
            let rest = try? REST("http://127.0.0.1:\(port)", options: .patient)
        else {
            preconditionFailure("the Meteor server said: \(parts)")
        }
        return (port, rest)
    }()

    /// With a collection of two players, and a publication of all of them.
    init() async throws {
        let answer = try await MeteorApp.server.rest.post("control/new_app").json
        id = answer?["id"]?.stringValue ?? ""
        url = "http://127.0.0.1:\(MeteorApp.server.port)/apps/\(id)"
        try await control("collection", ["name": "players"])
        try await control(
            "insert",
            [
                "collection": "players",
                "many": [["_id": "a", "name": "Ada"], ["_id": "b", "name": "Bob"]],
            ])
        try await control(
            "publication", ["name": "all", "cursors": [["collection": "players"]]])
    }

    func control(_ action: String, _ arguments: JSONValue) async throws {
        _ = try await ask(action, arguments)
    }

    /// - Returns: the action's answer.
    func ask(_ action: String, _ arguments: JSONValue) async throws -> JSONValue {
        try await MeteorApp.server.rest.post(
            "apps/\(id)/control/\(action)", body: .json(try arguments.text)
        ).json ?? .null
    }

    func rename(_ id: String, to name: String) async throws {
        try await control(
            "update",
            [
                "collection": "players", "id": .string(id),
                "modifier": ["$set": ["name": .string(name)]],
            ])
    }

    /// Of all calls that the server has received.
    func paramsOfCalls() async throws -> [JSONValue] {
        let log = try await MeteorApp.server.rest.post(
            "apps/\(id)/control/log", body: .json(#"{"what":"in","msg":"method"}"#)
        ).json
        return log?.arrayValue?.compactMap { $0["message"]?["params"] } ?? []
    }

    func client(_ options: DDPClient.Options = .init()) throws -> DDPClient {
        let client = try DDPClient(url, options: options)
        try client.connect()
        return client
    }
}
