import Dispatch
import Glibc
import Realtime
import Synchronization

/// Standard input: its lines as bytes, or its bytes as they come.
final class InputLines: Sendable {
    private let buffer = Mutex(Buffer())

    /// The next line without its end, nil at the end of the input. Read on a thread that may wait,
    /// and when it is asked for: a source that is faster than the server waits in its pipe.
    /// - Throws: `RealtimeError` for a line that is too long for a message.
    func next() async throws -> [UInt8]? {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { [self] in
                continuation.resume(
                    with: Result { try buffer.withLock { try $0.nextLine() } })
            }
        }
    }

    /// What one read(2) returns, up to 64 KiB, with nothing added or removed; nil at the end of the
    /// input. Not to be mixed with `next`.
    func nextBytes() async -> [UInt8]? {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                let bytes = Buffer.read()
                continuation.resume(returning: bytes.isEmpty ? nil : bytes)
            }
        }
    }

    /// How many there were, with the one that was read last.
    var count: Int { buffer.withLock { $0.count } }

    private struct Buffer {
        private var bytes: [UInt8] = []
        /// Where the next line begins.
        private var start = 0
        private(set) var count = 0
        private static let chunk = 64 << 10
        private static let limit = 64 << 20

        mutating func nextLine() throws -> [UInt8]? {
            count += 1
            var searched = start
            while true {
                if let end = bytes[searched...].firstIndex(of: 0x0A) {
                    defer { start = end + 1 }
                    return Array(bytes[start..<end])
                }
                bytes.removeFirst(start)
                start = 0
                searched = bytes.count
                guard searched <= Buffer.limit else {
                    throw RealtimeError(
                        .invalidArgument, "line \(count) of the input has more than 64 MiB")
                }
                guard readMore() else { break }
            }
            // The last line may lack its end.
            defer { bytes = [] }
            return bytes.isEmpty ? nil : bytes
        }

        /// False at the end.
        private mutating func readMore() -> Bool {
            let more = Buffer.read()
            bytes += more
            return !more.isEmpty
        }

        /// Empty at the end.
        static func read() -> [UInt8] {
            [UInt8](unsafeUninitializedCapacity: chunk) { buffer, count in
                count = max(0, Files.read(STDIN_FILENO, buffer))
            }
        }
    }
}
