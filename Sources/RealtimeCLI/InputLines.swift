import Dispatch
import Glibc
import Realtime
import Synchronization

/// Standard input, as lines or as bytes.
final class InputLines: Sendable {
    private let buffer = Mutex(Buffer())

    /// Returns the next line without its end, or nil at the end of the input. Reads on a thread
    /// that may block, and only when called: a source that is faster than the server waits.
    /// - Throws: `RealtimeError` if the line is too long for a message.
    func next() async throws -> [UInt8]? {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { [self] in
                continuation.resume(
                    with: Result { try buffer.withLock { try $0.nextLine() } })
            }
        }
    }

    /// Returns the bytes of one read(2), up to 64 KiB, or nil at the end of the input. A program
    /// calls this or `next`, not both.
    func nextBytes() async -> [UInt8]? {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                let bytes = Buffer.read()
                continuation.resume(returning: bytes.isEmpty ? nil : bytes)
            }
        }
    }

    /// The number of the line that was read last.
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

        /// Returns false at the end of the input.
        private mutating func readMore() -> Bool {
            let more = Buffer.read()
            bytes += more
            return !more.isEmpty
        }

        /// Returns no bytes at the end of the input.
        static func read() -> [UInt8] {
            [UInt8](unsafeUninitializedCapacity: chunk) { buffer, count in
                count = max(0, Files.read(STDIN_FILENO, buffer))
            }
        }
    }
}
