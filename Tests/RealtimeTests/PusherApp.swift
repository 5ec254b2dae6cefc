import Foundation
import Realtime
import Synchronization

/// An app of its own on `Tests/Support/pusher_server`, which is started once for all tests of the
/// process.
struct PusherApp: Sendable {
    let id: String
    let key: String
    let secret: String
    /// The master key of encrypted channels.
    let masterKey: [UInt8]

    private static let server: (port: Int, rest: REST) = {
        let parts = Peer.start("Tests/Support/pusher_server")
        guard parts.count == 3, let port = Int(parts[0]),
            let rest = try? REST("http://127.0.0.1:\(port)", options: .patient)
        else {
            preconditionFailure("the Pusher server said: \(parts)")
        }
        return (port, rest)
    }()

    /// - Parameter settings: as in `settings.py`.
    init(_ settings: JSONValue = [:]) async throws {
        let answer = try await PusherApp.server.rest.post("control/new_app").json
        func text(_ name: String) -> String { answer?[name]?.stringValue ?? "" }
        id = text("id")
        key = text("key")
        secret = text("secret")
        masterKey = Data(base64Encoded: text("master_key")).map { [UInt8]($0) } ?? []
        try await control("settings", settings)
    }

    static var port: Int { server.port }

    var authEndpoint: String { "http://127.0.0.1:\(PusherApp.port)/apps/\(id)/pusher/auth" }
    var userAuthEndpoint: String {
        "http://127.0.0.1:\(PusherApp.port)/apps/\(id)/pusher/user-auth"
    }

    /// An action of `control.py`.
    @discardableResult
    func control(_ action: String, _ arguments: JSONValue = [:]) async throws -> JSONValue {
        var request = REST.Request(
            "POST", "apps/\(id)/control/\(action)", body: .json(try arguments.text))
        // A test that waits must not hold up the others.
        request.order = .never
        return try await PusherApp.server.rest.send(request).json ?? .null
    }

    func publish(_ channel: String, _ event: String, _ data: JSONValue = [:]) async throws {
        try await control(
            "publish", ["channel": .string(channel), "event": .string(event), "data": data])
    }

    /// Waits until the log has an entry with these fields; returns the last one.
    @discardableResult
    func wait(_ fields: JSONValue) async throws -> JSONValue {
        try await control("wait", fields).arrayValue?.last ?? .null
    }

    /// Waits until a message with this event came from a client; returns the last one.
    @discardableResult
    func received(_ event: String, count: Int64 = 1) async throws -> JSONValue {
        try await wait(["what": "in", "event": .string(event), "count": .integer(count)])
    }

    /// The number of log entries with these fields.
    func count(_ fields: JSONValue) async throws -> Int {
        try await control("log", fields).arrayValue?.count ?? 0
    }

    func options(
        _ method: AuthMethod = .noMethod, _ change: (inout PusherClientOptions) -> Void = { _ in }
    ) -> PusherClientOptions {
        var options = PusherClientOptions(
            authMethod: method, host: .host("127.0.0.1"), port: PusherApp.port, useTLS: false)
        // Other suites run at the same time: these tests do not check time limits.
        options.connectTimeout = .seconds(60)
        options.authTimeout = .seconds(60)
        change(&options)
        return options
    }

    func pusher(
        _ method: AuthMethod = .noMethod, _ change: (inout PusherClientOptions) -> Void = { _ in }
    ) -> Pusher {
        Pusher(key: key, options: options(method, change))
    }
}

/// What handlers were called with, in order.
final class Notes: Sendable {
    private let lines = Mutex<[String]>([])
    private let waiting = Mutex<
        [(test: @Sendable ([String]) -> Bool, CheckedContinuation<Void, Never>)]
    >([])

    var all: [String] { lines.withLock { $0 } }

    func add(_ line: String) {
        let all = lines.withLock { lines in
            lines.append(line)
            return lines
        }
        let ready = waiting.withLock { waiting in
            let ready = waiting.filter { $0.test(all) }
            waiting.removeAll { $0.test(all) }
            return ready
        }
        for (_, continuation) in ready { continuation.resume() }
    }

    /// Waits until the lines pass a test.
    func wait(until test: @escaping @Sendable ([String]) -> Bool) async {
        await withCheckedContinuation { continuation in
            waiting.withLock { $0.append((test, continuation)) }
            let isReady = test(all)
            guard isReady else { return }
            let mine = waiting.withLock { waiting in
                let ready = waiting.filter { $0.test(all) }
                waiting.removeAll { $0.test(all) }
                return ready
            }
            for (_, continuation) in mine { continuation.resume() }
        }
    }

    /// Waits for a line.
    func wait(for line: String) async { await wait { $0.contains(line) } }

    /// Waits for so many lines, and returns them.
    @discardableResult
    func wait(count: Int) async -> [String] {
        await wait { $0.count >= count }
        return all
    }
}
