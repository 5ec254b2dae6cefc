import Foundation

/// `Tests/Support/echo_server.py`, started once for all tests of the process. It ends by itself
/// when this process does, since its standard input closes then.
struct EchoServer: Sendable {
    let port: Int
    let securePort: Int
    let caFile: String

    static let shared: EchoServer = {
        let root = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().path()
        let process = Process()
        let python = ProcessInfo.processInfo.environment["PYTHON"] ?? root + "build/venv/bin/python"
        process.executableURL = URL(filePath: python)
        process.arguments = [root + "Tests/Support/echo_server.py"]
        let output = Pipe()
        process.standardOutput = output
        process.standardInput = Pipe()
        do {
            try process.run()
        } catch {
            preconditionFailure("\(python) could not be run (make install makes it): \(error)")
        }
        running = process
        var line = ""
        while !line.hasSuffix("\n") {
            let piece = output.fileHandleForReading.availableData
            precondition(!piece.isEmpty, "the echo server ended before it was ready")
            line += String(decoding: piece, as: UTF8.self)
        }
        let parts = line.split(whereSeparator: \.isWhitespace)
        guard parts.count == 3, let port = Int(parts[0]), let securePort = Int(parts[1]) else {
            preconditionFailure("the echo server said: \(line)")
        }
        return EchoServer(port: port, securePort: securePort, caFile: String(parts[2]))
    }()

    /// Held so that its pipes stay open.
    nonisolated(unsafe) private static var running: Process?

    func url(_ path: String) -> String { "ws://127.0.0.1:\(port)/\(path)" }
    func secureURL(_ path: String) -> String { "wss://localhost:\(securePort)/\(path)" }
}
