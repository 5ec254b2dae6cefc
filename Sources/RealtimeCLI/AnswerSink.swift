import Glibc
import Realtime

/// Where the body of a response goes: to a file or a pipe as it arrives; to a terminal or into a
/// JSON object once it is complete, because the format depends on whether all of it is text.
///
/// Unchecked because one task uses it.
final class AnswerSink: @unchecked Sendable {
    private enum Place {
        case file(PartialFile)
        /// Standard output, and how many bytes went there.
        case stream(Int)
        case kept([UInt8])
    }

    private let console: Console
    private var place: Place
    /// The body of an error does not go into a file that is to be continued.
    private var isDropping = false

    /// Of a body that is kept, in bytes.
    private static let limit = 64 << 20

    /// - Parameters:
    ///   - path: nil or "-" for standard output.
    ///   - continues: whether the part of an earlier run is continued.
    init(_ path: String?, continues: Bool, _ console: Console) throws {
        self.console = console
        if let path, path != "-" {
            place = .file(try PartialFile(path, continues: continues))
        } else {
            place = console.isJSON || Console.isOutputTerminal ? .kept([]) : .stream(0)
        }
    }

    /// Whether the body goes to a terminal.
    var isShown: Bool {
        if case .file = place { false } else { Console.isOutputTerminal }
    }

    /// How many bytes of the body there are.
    var count: Int {
        switch place {
        case .file(let file): file.count
        case .stream(let count): count
        case .kept(let bytes): bytes.count
        }
    }

    /// Whether the body can be taken from its beginning again.
    var canRestart: Bool {
        switch place {
        case .file(let file): file.part != nil || file.count == 0
        case .stream(let count): count == 0
        case .kept: true
        }
    }

    /// The head of a response has arrived: its body either continues what is there, or replaces it.
    /// An empty body replaces it, too; a failed request changes nothing.
    func begin(_ answer: REST.Response, continues: Bool) throws {
        isDropping = count > 0 && !(200...299).contains(answer.status)
        if isDropping || continues { return }
        switch place {
        case .file(let file): file.restart()
        case .stream: break
        case .kept:
            place = .kept([])
            let isCoded = answer.header("content-encoding") != nil
            let length = answer.header("content-length").flatMap { Int($0) }
            if !isCoded, let length, length > AnswerSink.limit { throw tooLarge() }
        }
    }

    func take(_ piece: [UInt8]) throws {
        if isDropping { return }
        switch place {
        case .file(let file): try file.write(piece)
        case .stream(let count):
            Output.write(piece)
            place = .stream(count + piece.count)
        case .kept(var bytes):
            guard bytes.count + piece.count <= AnswerSink.limit else { throw tooLarge() }
            // So that there is one owner, and nothing is copied.
            place = .kept([])
            bytes += piece
            place = .kept(bytes)
        }
    }

    /// Reports that a body is too long to be kept.
    /// - Returns: the exit code: nothing is wrong with the server.
    private func tooLarge() -> ExitStatus {
        let error = RealtimeError(.tooLarge, "the response has more than 64 MiB")
        let advice = "Write it to a file with --output."
        console.note(
            "\(error.message). \(advice)",
            JSONLine("error").with("code", "\(error.code)").with(message: error.message)
                .with("advice", advice))
        return .other
    }

    /// Called when the response is complete.
    func end(_ answer: REST.Response) throws {
        let line = JSONLine("answer").with("status", answer.status).with("reason", answer.reason)
            .with("url", answer.url).with("headers", answer.headers.map { ($0.name, $0.value) })
        switch place {
        case .file(let file):
            if !isDropping { try file.finish() }
            if console.isJSON { console.emit("", line.with("file", isDropping ? nil : file.path)) }
        case .stream: break
        case .kept(var body):
            // `emit` adds a line end.
            if !console.isJSON, body.last == 0x0A { body.removeLast() }
            guard console.isJSON || !body.isEmpty else { return }
            // A long body becomes text, and is then written at once. For a signal both count as
            // one, so that it does not wait for the reader after it has waited for the text.
            Blocked.during { console.emit(body, as: .lines, line) }
        }
    }

    /// Says where the beginning of a response is that broke off.
    /// - Parameter continues: whether another run can continue it.
    func reportPart(continues: Bool) {
        guard case .file(let file) = place, let part = file.part, file.count > 0 else { return }
        console.note(
            "\"\(part)\" has the first \(file.count) bytes"
                + (continues ? "; -C - continues it" : " of the response"),
            JSONLine("partial").with("file", part).with("bytes", file.count))
    }
}
