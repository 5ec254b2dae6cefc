import Glibc
import Simulator
import Testing
import Wire

@testable import Engine

/// Outboxes of processes that are killed, or that want the same file.
struct OutboxProcessTests {
    private let folder = Folder()

    @Test func twoProcesses() throws {
        let writer = try Writer(folder.outbox)
        #expect(writer.line() == "open 0")
        let error = #expect(throws: RealtimeError.self) { try OutboxFile.open(folder.outbox) }
        #expect(error?.code == .busy)
        #expect(try Writer(folder.outbox).rest() == ["busy"])
        writer.kill()
        _ = writer.rest()
        // The lock ends with the process.
        let (file, _) = try OutboxFile.open(folder.outbox)
        #expect(try Writer(folder.outbox).rest() == ["busy"])
        file.close()
    }

    /// Every entry for which `append` returned before the kill, and which was not to be removed, is
    /// there. The sizes make some rounds compact the file often, and others never.
    @Test(arguments: [(1, 1), (2, 3000), (3, 120_000), (4, 200)])
    func appendedEntriesSurviveAKill(seed: UInt64, bytes: Int) throws {
        var random = Random(seed: seed)
        var expected: [UInt64: UInt64] = [:]
        for round in 0..<50 {
            let threads = random.within(1...3)
            let writer = try Writer(
                folder.outbox, threads: threads, token: UInt64(round) << 40, bytes: bytes)
            #expect(writer.line() == "open \(expected.count)")
            // Kill it as soon as it has printed this much: while it works, not while it waits for
            // us.
            writer.read(lines: random.below(60))
            writer.kill()
            var ledger = Ledger(expected)
            for line in writer.rest() { ledger.note(line) }
            #expect(ledger.strangers.isEmpty)

            let (file, entries) = try OutboxFile.open(folder.outbox)
            file.close()
            #expect(entries.map(\.id) == entries.map(\.id).sorted())
            var found: [UInt64: UInt64] = [:]
            for entry in entries {
                let token = UInt64(entry.message.key) ?? 0
                #expect(entry.message == Writer.message(of: token, bytes: bytes))
                found[entry.id] = token
            }
            for (id, token) in ledger.kept {
                #expect(found[id] == token, "round \(round): entry \(id) is lost")
            }
            expected = found
        }
    }
}

/// What a writer has promised.
private struct Ledger {
    var kept: [UInt64: UInt64]
    var strangers: [String] = []

    init(_ kept: [UInt64: UInt64]) { self.kept = kept }

    mutating func note(_ line: String) {
        let words = line.split(separator: " ")
        let numbers = words.dropFirst().compactMap { UInt64($0) }
        switch (words.first, numbers.count) {
        case ("append", 2):
            kept[numbers[0]] = numbers[1]
        case ("remove", 1): kept[numbers[0]] = nil
        default: strangers.append(line)
        }
    }
}

/// The program that writes until it is killed; it was built beside the tests.
private final class Writer {
    private var process: pid_t = 0
    private var pipe: Int32
    private var buffer: [UInt8] = []

    init(_ path: String, threads: Int = 1, token: UInt64 = 0, bytes: Int = 10) throws {
        var ends: [Int32] = [0, 0]
        guard Glibc.pipe(&ends) == 0 else { throw RealtimeError(.system, "no pipe") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(ends[1]) }
        pipe = ends[0]
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        let arguments = [Writer.program, path, "\(threads)", "\(token)", "\(bytes)"]
        var pointers = arguments.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        let result = posix_spawn(&process, Writer.program, &actions, nil, &pointers, environ)
        guard result == 0 else {
            process = 0
            throw RealtimeError(.system, "\(Writer.program) is not started: \(result)")
        }
    }

    deinit {
        kill()
        if process > 0 { waitpid(process, nil, 0) }
        close(pipe)
    }

    func kill() {
        if process > 0 { Glibc.kill(process, SIGKILL) }
    }

    /// The next complete line; nil at the end.
    func line() -> String? {
        while true {
            if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
                defer { buffer.removeFirst(end + 1) }
                return String(decoding: buffer[..<end], as: UTF8.self)
            }
            guard readSome() else { return nil }
        }
    }

    /// Waits for this many more lines.
    func read(lines: Int) {
        var count = buffer.count { $0 == UInt8(ascii: "\n") }
        while count < lines {
            let known = buffer.count
            guard readSome() else { return }
            count += buffer[known...].count { $0 == UInt8(ascii: "\n") }
        }
    }

    private func readSome() -> Bool {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = Glibc.read(pipe, &bytes, bytes.count)
        buffer += bytes[..<max(0, count)]
        return count > 0
    }

    /// The lines up to the end of the process, which releases its file.
    func rest() -> [String] {
        var lines: [String] = []
        while let line = line() { lines.append(line) }
        waitpid(process, nil, 0)
        process = 0
        return lines
    }

    /// The message that the program makes for a token, implemented a second time.
    static func message(of token: UInt64, bytes: Int) -> OutboxMessage {
        let count = Int((token &* 0x9E37_79B9_7F4A_7C15) >> 33) % max(bytes, 1)
        let payload = [UInt8](repeating: UInt8(truncatingIfNeeded: token), count: count)
        return OutboxMessage(.binary, key: "\(token)", payload: payload)
    }

    private static let program: String = {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &path, path.count)
        let own = path[..<max(0, count)].map(UInt8.init(bitPattern:))
        let folder = own[..<(own.lastIndex(of: UInt8(ascii: "/")) ?? 0)]
        return String(decoding: folder, as: UTF8.self) + "/OutboxWriter"
    }()
}
