import Dispatch
import Glibc
import Realtime
import Synchronization

/// A file as the body of a request, read while it is sent; "-" is standard input. A regular file
/// has a length and can be read again for another attempt; a pipe has no length and cannot.
final class FileBody: Sendable {
    private let path: String
    private let descriptor: Int32
    /// Of a regular file: from the current position to the end. Standard input may be partly read.
    private let range: (start: Int, length: Int)?
    /// Why reading failed. The request's own error does not name the file.
    private let failed = Mutex<RealtimeError?>(nil)

    private static let pieceBytes = 64 << 10

    init(_ path: String) throws {
        try PEM.refuse(path)
        self.path = path
        descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Files.failure("cannot be read", path) }
        var facts = stat()
        guard fstat(descriptor, &facts) == 0 else { throw Files.failure("cannot be read", path) }
        switch facts.st_mode & S_IFMT {
        case S_IFREG:
            let start = max(0, lseek(descriptor, 0, SEEK_CUR))
            range = (start, max(0, Int(facts.st_size) - start))
        case S_IFDIR:
            errno = EISDIR
            throw Files.failure("cannot be read", path)
        default: range = nil
        }
    }

    deinit { if path != "-" { close(descriptor) } }

    var failure: RealtimeError? { failed.withLock { $0 } }

    var body: REST.Request.Body {
        guard let range else { return .pieces(Pieces(file: self)) }
        return .source(length: range.length) { [self] in
            let at = Atomic<Int>(0)
            return { [self] capacity in
                let done = at.load(ordering: .relaxed)
                let piece = try take(range.start + done, min(capacity, range.length - done))
                at.store(done + piece.count, ordering: .relaxed)
                return piece
            }
        }
    }

    private func take(_ offset: Int, _ count: Int) throws -> [UInt8] {
        guard count > 0 else { return [] }
        let piece = try read(count) { pread(descriptor, $0.baseAddress, $0.count, off_t(offset)) }
        guard !piece.isEmpty else {
            throw noted(RealtimeError(.system, "\"\(path)\" became shorter while it was sent"))
        }
        return piece
    }

    /// Waits for the next bytes of a pipe or terminal; empty at its end.
    fileprivate func wait() throws -> [UInt8] {
        try read(FileBody.pieceBytes) { Files.read(descriptor, $0) }
    }

    private func read(
        _ capacity: Int, _ call: (UnsafeMutableBufferPointer<UInt8>) -> Int
    ) throws -> [UInt8] {
        var got = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
            repeat { got = call(buffer) } while got < 0 && errno == EINTR
            count = max(0, got)
        }
        guard got >= 0 else { throw noted(Files.failure("cannot be read", path)) }
        return bytes
    }

    private func noted(_ error: RealtimeError) -> RealtimeError {
        failed.withLock { $0 = error }
        return error
    }

    /// Reads on a thread that may block, so that the connection is served meanwhile.
    private struct Pieces: AsyncSequence, AsyncIteratorProtocol, Sendable {
        typealias Element = [UInt8]
        typealias Failure = any Error

        let file: FileBody

        func makeAsyncIterator() -> Pieces { self }

        mutating func next() async throws -> [UInt8]? {
            let file = file
            let piece: [UInt8] = try await withCheckedThrowingContinuation { continuation in
                DispatchQueue.global().async {
                    continuation.resume(with: Result { try file.wait() })
                }
            }
            return piece.isEmpty ? nil : piece
        }
    }
}
