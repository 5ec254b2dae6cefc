import Glibc
import Synchronization
import Wire

@testable import Engine

/// A folder that is removed with its last user.
final class Folder: Sendable {
    let path: String
    /// In memory if possible: the tests do not check whether a disk keeps what it synced.
    private static let parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"

    init() {
        var template = Array("\(Folder.parent)/realtime-outbox-XXXXXX".utf8CString)
        let made = template.withUnsafeMutableBufferPointer { buffer in
            buffer.baseAddress.flatMap { mkdtemp($0) } != nil
        }
        precondition(made, "no folder for the test")
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit {
        for name in names { _ = unlink("\(path)/\(name)") }
        _ = rmdir(path)
    }

    var outbox: String { "\(path)/outbox" }

    var names: [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    func read(_ name: String = "outbox") -> [UInt8] {
        let descriptor = open("\(path)/\(name)", O_RDONLY)
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return bytes }
            bytes += buffer[..<count]
        }
    }

    func write(_ bytes: [UInt8], _ name: String = "outbox") {
        let descriptor = open("\(path)/\(name)", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        defer { close(descriptor) }
        var written = 0
        while written < bytes.count {
            written += bytes[written...].withUnsafeBytes {
                Glibc.write(descriptor, $0.baseAddress, $0.count)
            }
        }
    }
}

/// A disk that a test can fill, break, delay and inspect.
final class Disk: Sendable {
    struct State {
        /// How many bytes it still accepts.
        var room = Int.max
        var syncFault: Int32 = 0
        var syncs = 0
        var writes = 0
        /// A sync waits while this is set; a second sync meanwhile does not.
        var isHeld = false
        var inSync = 0
        var isInSync: Bool { inSync > 0 }
    }

    let state = Mutex(State())

    var outbox: OutboxDisk {
        OutboxDisk(
            write: { [self] descriptor, bytes, offset in
                let room = state.withLock { state -> Int in
                    let room = min(state.room, bytes.count)
                    state.room -= room
                    state.writes += 1
                    return room
                }
                guard room > 0 else {
                    Glibc.errno = ENOSPC
                    return -1
                }
                return pwrite(descriptor, bytes.baseAddress, room, off_t(offset))
            },
            sync: { [self] _ in
                let isFirst = state.withLock { state in
                    defer { state.inSync += 1 }
                    state.syncs += 1
                    return !state.isInSync
                }
                while isFirst, state.withLock({ $0.isHeld }) { sched_yield() }
                let fault = state.withLock { state in
                    state.inSync -= 1
                    return state.syncFault
                }
                Glibc.errno = fault
                return fault == 0 ? 0 : -1
            })
    }
}

func text(_ text: String) -> OutboxMessage {
    OutboxMessage(.text, key: "key of \(text)", payload: Array(text.utf8))
}

extension [OutboxEntry] {
    var texts: [String] { map { String(decoding: $0.message.payload, as: UTF8.self) } }
}
