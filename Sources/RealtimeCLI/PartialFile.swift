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
        try PartialFile.refuseLink(path)
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
        // Without O_NONBLOCK, opening a pipe would wait for its other end.
        let flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
        descriptor = open(name, flags, 0o666)
        guard descriptor >= 0 else { throw Files.failure("cannot be written", isNew ? path : name) }
        try PartialFile.checkOurs(descriptor, name)
        if exists { fchmod(descriptor, facts.st_mode & 0o7777) }
        if continues { count = max(0, Int(lseek(descriptor, 0, SEEK_END))) }
    }

    /// Others may have put a link there, in a folder that they can write too: its file would be
    /// replaced. The user's own links are followed, as by a shell.
    private static func refuseLink(_ path: String) throws {
        var link = stat()
        guard lstat(path, &link) == 0, link.st_mode & S_IFMT == S_IFLNK,
            link.st_uid != geteuid()
        else { return }
        let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        var folder = stat()
        guard stat(slash.map { String(path[...$0]) } ?? ".", &folder) == 0,
            folder.st_mode & 0o022 != 0, folder.st_uid != link.st_uid
        else { return }
        throw RealtimeError(
            .system,
            "\"\(path)\" is a symbolic link of another user, in a folder that others can write;"
                + " it is not followed")
    }

    /// Nobody chose the name of the part, so what is there must come from an earlier run: otherwise
    /// its bytes would go to a file that another user has chosen, or can read.
    private static func checkOurs(_ descriptor: Int32, _ name: String) throws {
        var facts = stat()
        guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG,
            facts.st_uid == geteuid(), facts.st_nlink == 1
        else {
            throw RealtimeError(
                .system,
                "\"\(name)\" is not the part of an earlier download by this user; remove it")
        }
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
