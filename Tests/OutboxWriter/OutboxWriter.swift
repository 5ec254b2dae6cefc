import Engine
import Glibc
import Wire

/// Writes to an outbox until it is killed, and says on its standard output what it may be held to:
///
///     open N                 it has the outbox, with N entries
///     busy                   someone else has it; the program ends
///     append ID TOKEN        `append` has returned; see `message(of:)`
///     remove ID              `remove` will be called
///
///     outbox-writer PATH THREADS FIRST-TOKEN BYTES
@main
struct OutboxWriter {
    static func main() {
        let arguments = CommandLine.arguments
        guard arguments.count == 5, let threads = Int(arguments[2]),
            let token = UInt64(arguments[3]), let bytes = Int(arguments[4])
        else { exit(2) }
        do throws(RealtimeError) {
            let (file, entries) = try OutboxFile.open(arguments[1])
            say("open \(entries.count)")
            // Remove most of the entries that an earlier writer left.
            for entry in entries where entry.id % 8 != 0 { remove(entry.id, file) }
            let work = Work(file: file, bytes: bytes)
            for index in 1..<max(threads, 1) {
                work.start(token + UInt64(index) << 32)
            }
            work.run(token)
        } catch {
            say(error.code == .busy ? "busy" : "failed: \(error.message)")
        }
    }

    struct Work {
        let file: OutboxFile
        let bytes: Int

        func start(_ token: UInt64) {
            let work = Unmanaged.passRetained(Box { run(token) })
            var thread = pthread_t()
            let result = pthread_create(
                &thread, nil,
                { argument in
                    if let argument {
                        Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().run()
                    }
                    return nil
                }, work.toOpaque())
            guard result == 0 else { exit(3) }
        }

        func run(_ first: UInt64) {
            var mine: [UInt64] = []
            // It ends by itself if nobody kills it.
            for token in first..<(first + 20_000) {
                do throws(RealtimeError) {
                    let id = try file.append(message(of: token, bytes: bytes))
                    OutboxWriter.say("append \(id) \(token)")
                    mine.append(id)
                } catch {
                    OutboxWriter.say("failed: \(error.message)")
                    exit(4)
                }
                if token % 3 == 0 { OutboxWriter.remove(mine.removeFirst(), file) }
                // Now and then empty the outbox.
                if token % 16 == 15 {
                    for id in mine { OutboxWriter.remove(id, file) }
                    mine = []
                }
            }
        }

        /// The message that the test expects for a token: its text and sizes depend only on the
        /// token.
        func message(of token: UInt64, bytes: Int) -> OutboxMessage {
            let count = Int((token &* 0x9E37_79B9_7F4A_7C15) >> 33) % max(bytes, 1)
            let byte = UInt8(truncatingIfNeeded: token)
            return OutboxMessage(
                .binary, key: "\(token)", payload: [UInt8](repeating: byte, count: count))
        }
    }

    final class Box {
        let run: () -> Void
        init(_ run: @escaping () -> Void) { self.run = run }
    }

    static func remove(_ id: UInt64, _ file: OutboxFile) {
        say("remove \(id)")
        file.remove(id)
    }

    /// Prints a line in one write, which a pipe takes whole.
    static func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        if write(1, bytes, bytes.count) != bytes.count { exit(0) }
    }
}
