import Glibc
import Realtime

/// A file that is written under another name, with `.part` at its end, until it is whole: other
/// programs never read half of it, and an earlier content stays until then. A pipe or a device is
/// written under its own name.
///
/// Unchecked because one task uses it.
final class PartialFile: @unchecked Sendable {
    /// As the user wrote it.
    let path: String
    /// Where the bytes are until the file is whole; nil if they go where they belong.
    let part: String?
    /// The path without symbolic links: the file that `part` replaces.
    private let target: String
    private let descriptor: Int32
    /// Whether this process may remove the part, because it was not there before.
    private let isNew: Bool
    /// How many bytes there are.
    private(set) var count = 0
    private var isDone = false

    /// - Parameter continues: keeps the part of an earlier run; its bytes count.
    init(_ path: String, continues: Bool) throws {
        try PEM.refuse(path, "--output")
        self.path = path
        target =
            realpath(path, nil).map { name in
                defer { free(name) }
                return String(cString: name)
            } ?? path
        var facts = stat()
        let exists = stat(path, &facts) == 0
        let isRegular = facts.st_mode & S_IFMT == S_IFREG
        // A folder cannot be opened for writing either.
        if exists, !isRegular || access(path, W_OK) != 0 {
            part = nil
            isNew = false
            descriptor = Blocked.during { open(path, O_WRONLY | O_CLOEXEC) }
            guard descriptor >= 0 else { throw Files.failure("cannot be written", path) }
            return
        }
        let name = "\(target).part"
        part = name
        isNew = access(name, F_OK) != 0
        descriptor = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw Files.failure("cannot be written", isNew ? path : name) }
        if exists { fchmod(descriptor, facts.st_mode & 0o7777) }
        if continues { count = max(0, Int(lseek(descriptor, 0, SEEK_END))) }
    }

    deinit {
        close(descriptor)
        if !isDone, isNew, count == 0, let part { unlink(part) }
    }

    /// Forgets what was written.
    func restart() {
        count = 0
        // Pipes and devices cannot be truncated, which does not matter.
        _ = ftruncate(descriptor, 0)
        _ = lseek(descriptor, 0, SEEK_SET)
    }

    func write(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let (written, number) = rest.withUnsafeBytes { bytes in
                Blocked.during {
                    (Glibc.write(descriptor, bytes.baseAddress, bytes.count), errno)
                }
            }
            if written < 0 && number != EINTR {
                errno = number
                throw Files.failure("cannot be written", part ?? path)
            }
            count += max(0, written)
            rest = rest.dropFirst(max(0, written))
        }
    }

    /// Gives the file its name: it is whole.
    func finish() throws {
        isDone = true
        guard let part else { return }
        guard rename(part, target) == 0 else { throw Files.failure("cannot be written", path) }
    }
}
