import Foundation
import Session
import Wire

@testable import Engine

/// A Python server that the tests talk to. It ends with this process, because its standard input
/// closes then.
final class PeerServer: Sendable {
    let port: Int
    /// Kept, so that its pipes stay open.
    private let process: Process

    var url: String { "http://127.0.0.1:\(port)" }

    /// - Parameter script: a path in this repository.
    init(_ script: String) {
        let root = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        process = Process()
        process.executableURL = root.appending(path: "build/venv/bin/python")
        process.arguments = [root.appending(path: script).path()]
        let output = Pipe()
        process.standardOutput = output
        process.standardInput = Pipe()
        try? process.run()
        var line = ""
        while !line.hasSuffix("\n") {
            let piece = output.fileHandleForReading.availableData
            precondition(!piece.isEmpty, "\(script) ended before it was ready")
            line += String(decoding: piece, as: UTF8.self)
        }
        port = Int(line.split(separator: " ")[0]) ?? 0
    }

    /// Makes a request of the server's control interface.
    static func post(
        _ path: String, _ body: JSONValue, by rest: RESTClient
    ) throws -> JSONValue {
        let builder = try RESTRequestBuilder(rest, "POST", path)
        try builder.setBody(Array(try body.text.utf8), type: "application/json")
        builder.policy.order = .never
        // The server waits up to 30 s for what a test expects.
        builder.policy.attemptTimeout = .seconds(60)
        var answer: RESTResult?
        builder.handlers.done = { answer = $0 }
        try builder.send()
        while answer == nil { try rest.loop.dispatch(timeout: 1000) }
        if let error = answer?.outcome.error { throw error }
        return try JSONValue(parsing: answer?.body.copy ?? [])
    }
}
