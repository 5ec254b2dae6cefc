import Glibc
import Realtime
import Synchronization

/// Writes the body of a response: to a file or a pipe as it arrives; to a terminal or into a JSON
/// object once it is complete, because the format depends on whether all of it is text.
final class AnswerSink: Sendable {
    private let console: Console
    private let path: String?
    private let descriptor: Int32
    private let isKept: Bool
    private let kept = Mutex<[UInt8]>([])
    private let isBegun = Atomic<Bool>(false)

    /// Of a body that is kept, in bytes.
    private static let limit = 64 << 20

    /// - Parameter path: nil or "-" for standard output.
    init(_ path: String?, _ console: Console) throws {
        self.console = console
        let file = path == "-" ? nil : path
        self.path = file
        descriptor =
            file.map { open($0, O_WRONLY | O_CREAT | O_CLOEXEC, 0o666) } ?? STDOUT_FILENO
        guard descriptor >= 0 else { throw Files.failure("cannot be written", file ?? "-") }
        isKept = file == nil && (console.isJSON || Console.isOutputTerminal)
    }

    deinit { if path != nil { close(descriptor) } }

    /// Whether the body goes to a terminal.
    var isShown: Bool { path == nil && Console.isOutputTerminal }

    func take(_ piece: [UInt8]) throws {
        guard isKept else { return try write(piece) }
        try kept.withLock { kept in
            guard kept.count + piece.count <= AnswerSink.limit else {
                throw RealtimeError(
                    .tooLarge, "the response has more than 64 MiB; --output writes it to a file")
            }
            kept += piece
        }
    }

    /// Called when the response is complete.
    func end(_ answer: REST.Response) throws {
        let line = JSONLine("answer").with("status", answer.status).with("reason", answer.reason)
            .with("url", answer.url).with("headers", answer.headers.map { ($0.name, $0.value) })
        if isKept {
            var body = kept.withLock { $0 }
            // `emit` adds a line end.
            if !console.isJSON, body.last == 0x0A { body.removeLast() }
            if console.isJSON || !body.isEmpty { console.emit(body, line) }
            return
        }
        begin()
        if console.isJSON {
            console.emit("", line.with("file", path))
        }
    }

    /// Empties the file when the first byte of a response arrives: a failed request leaves it
    /// unchanged. Pipes and devices cannot be truncated, which does not matter.
    private func begin() {
        guard path != nil, !isBegun.exchange(true, ordering: .relaxed) else { return }
        _ = ftruncate(descriptor, 0)
    }

    private func write(_ piece: [UInt8]) throws {
        begin()
        guard let path else { return Console.write(piece, to: descriptor) }
        var rest = piece[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 && errno != EINTR { throw Files.failure("cannot be written", path) }
            rest = rest.dropFirst(max(0, count))
        }
    }
}
