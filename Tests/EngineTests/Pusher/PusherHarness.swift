import Foundation
import Session
import Synchronization
import Testing
import Wire

@testable import Engine

/// A Pusher connection on a loop of its own, and an app of its own on Tests/Support/pusher_server.
/// The test drives the loop.
final class PusherHarness {
    let loop: Loop
    let connection: PusherConnection
    private let rest: RESTClient
    private let app: String
    let secret: String
    let masterKey: [UInt8]
    /// What the handlers reported, a line each.
    var lines: [String] = []

    /// A guard against hanging.
    private static let patience = Duration.seconds(30)

    private static let server = PeerServer("Tests/Support/pusher_server")

    init(_ settings: JSONValue = [:]) throws {
        loop = try Loop()
        rest = try RESTClient(base: PusherHarness.server.url, on: loop)
        let new = try PeerServer.post("control/new_app", [:], by: rest)
        app = new["id"]?.stringValue ?? ""
        secret = new["secret"]?.stringValue ?? ""
        masterKey =
            new["master_key"]?.stringValue.flatMap { Data(base64Encoded: $0) }
            .map { Array($0) } ?? []
        connection = try PusherConnection(key: new["key"]?.stringValue ?? "", on: loop)
        try connection.configure { (options) throws(RealtimeError) in
            try options.setHost("127.0.0.1")
            options.port = PusherHarness.server.port
            options.usesTLS = false
        }
        try control("settings", settings)
        try report()
    }

    deinit {
        connection.close()
        rest.close()
        loop.close()
    }

    var pushURL: String { PusherHarness.server.url + "/push" }

    func endpoint(_ path: String = "pusher/auth") -> String {
        "\(PusherHarness.server.url)/apps/\(app)/\(path)"
    }

    private func report() throws {
        let add: (String) -> Void = { [unowned self] in lines.append($0) }
        try connection.setHandlers { handlers in
            handlers.state = { add("\($0.old.name) → \($0.new.name)") }
            handlers.error = { add("error \($0.code ?? 0) \($0.message)") }
            handlers.subscribed = { add("subscribed \($0.name)") }
            handlers.subscriptionFailed = { add("failed \($0.name): \($1.error.message)") }
            handlers.memberAdded = { add("added \($1.id) to \($0.name)") }
            handlers.memberRemoved = { add("removed \($1.id) from \($0.name)") }
            handlers.decryptionFailed = { channel, event, _ in
                add("undecryptable \(event) of \(channel.name)")
            }
            handlers.signedIn = { id, _ in add("signed in \(id)") }
            handlers.signInFailed = { add("sign-in failed: \($0.error.message)") }
            handlers.watchlist = { add("\($0.name) \($0.userIDs.joined(separator: " "))") }
        }
    }

    // MARK: The loop

    func run(
        until isDone: () -> Bool, _ location: SourceLocation = #_sourceLocation
    ) throws {
        let end = ContinuousClock.now + PusherHarness.patience
        while !isDone() {
            guard ContinuousClock.now < end else {
                Issue.record("it did not happen; so far: \(lines)", sourceLocation: location)
                throw RealtimeError(.timeout, "the test's patience")
            }
            try loop.dispatch(timeout: 100)
        }
    }

    func run(until line: String, _ location: SourceLocation = #_sourceLocation) throws {
        try run(until: { lines.contains(line) }, location)
    }

    /// Runs what can run now.
    func settle() throws { for _ in 0..<3 { try loop.dispatch(timeout: 0) } }

    func connect() throws {
        try connection.connect()
        try run { connection.state == .connected }
    }

    // MARK: The server

    /// An action of control.py.
    @discardableResult
    func control(_ action: String, _ arguments: JSONValue = [:]) throws -> JSONValue {
        try PeerServer.post("apps/\(app)/control/\(action)", arguments, by: rest)
    }

    func publish(_ channel: String, _ event: String, _ data: JSONValue) throws {
        try control(
            "publish", ["channel": .string(channel), "event": .string(event), "data": data])
    }

    /// Waits until the server's log has an entry with these fields.
    @discardableResult
    func wait(_ fields: JSONValue) throws -> [JSONValue] {
        try control("wait", fields).arrayValue ?? []
    }
}
