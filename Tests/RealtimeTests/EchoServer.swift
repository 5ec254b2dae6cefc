import Foundation
import Realtime
import Synchronization

/// `Tests/Support/echo_server.py`, started once for all tests of the process.
struct EchoServer: Sendable {
    let port: Int
    let securePort: Int
    let caFile: String

    static let shared: EchoServer = {
        let parts = Peer.start("Tests/Support/echo_server.py")
        guard parts.count == 3, let port = Int(parts[0]), let securePort = Int(parts[1]) else {
            preconditionFailure("the echo server said: \(parts)")
        }
        return EchoServer(port: port, securePort: securePort, caFile: parts[2])
    }()

    func url(_ path: String) -> String { "ws://127.0.0.1:\(port)/\(path)" }
    func secureURL(_ path: String) -> String { "wss://localhost:\(securePort)/\(path)" }
}

/// `Tests/CTests/server.py`, which also streams events, started once for all tests of the process.
struct StreamServer: Sendable {
    let port: Int

    static let shared: StreamServer = {
        let parts = Peer.start("Tests/CTests/server.py")
        guard parts.count == 1, let port = Int(parts[0]) else {
            preconditionFailure("the stream server said: \(parts)")
        }
        return StreamServer(port: port)
    }()

    func url(_ path: String) -> String { "http://127.0.0.1:\(port)/\(path)" }
}

/// `Tests/Support/rest_server.py`, started once for all tests of the process.
struct RESTServer: Sendable {
    let url: String

    static let shared: RESTServer = {
        let parts = Peer.start("Tests/Support/rest_server.py")
        guard parts.count == 1 else { preconditionFailure("the REST server said: \(parts)") }
        return RESTServer(url: parts[0])
    }()
}

/// A Python program that the tests talk to. It ends with this process, because its standard input
/// closes then.
enum Peer {
    /// Kept, so that their pipes stay open.
    private static let running = Mutex<[Process]>([])

    /// Starts a script.
    /// - Returns: the words of its first line.
    static func start(_ script: String) -> [String] {
        let root = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().path()
        let process = Process()
        let python = ProcessInfo.processInfo.environment["PYTHON"] ?? root + "build/venv/bin/python"
        process.executableURL = URL(filePath: python)
        process.arguments = [root + script]
        let output = Pipe()
        process.standardOutput = output
        process.standardInput = Pipe()
        do {
            try process.run()
        } catch {
            preconditionFailure("\(python) could not be run (make install makes it): \(error)")
        }
        var line = ""
        while !line.hasSuffix("\n") {
            let piece = output.fileHandleForReading.availableData
            precondition(!piece.isEmpty, "\(script) ended before it was ready")
            line += String(decoding: piece, as: UTF8.self)
        }
        running.withLock { $0.append(process) }
        return line.split(whereSeparator: \.isWhitespace).map(String.init)
    }
}

extension REST.Options {
    /// Other suites run at the same time: for tests that do not check time limits.
    static var patient: REST.Options {
        var options = REST.Options()
        options.attemptTimeout = .seconds(60)
        options.deadline = nil
        return options
    }
}

extension Spreadbot.Configuration {
    /// For tests that do not check time limits: the next transport is not tried because others keep
    /// the processor busy.
    static func patient(_ baseURL: String) -> Self {
        var config = Self(baseURL: baseURL)
        config.connectTimeout = nil
        config.answerTimeout = nil
        config.pingInterval = nil
        return config
    }
}
