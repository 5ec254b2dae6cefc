import Glibc
import Session
import Synchronization
import Wire

/// The file in which a Meteor client keeps its documents for the next run. Only its owner may read
/// it.
///
/// Unchecked because the lock guards what changes.
final class DDPDocumentFile: @unchecked Sendable {
    private let file: OwnFile
    private let server: String
    private let process = getpid()
    /// The number of the last documents that were written.
    private let written = Mutex(0)

    /// How long a write may wait for the file's lock.
    private static let lockTimeout = Duration.seconds(1)

    private init(_ file: OwnFile, server: String) {
        self.file = file
        self.server = server
    }

    /// nil if the options name no file.
    convenience init?(_ options: DDPClientConfiguration) {
        guard let path = options.documentFile else { return nil }
        self.init(OwnFile(path: path, format: .documents), server: options.address.key)
    }

    /// - Throws: `.store` if the file cannot be used.
    func check() throws(RealtimeError) { try file.check() }

    /// The documents of the last run; nil if there are none, or the file is damaged.
    func load() -> DDPKeptDocuments? {
        do throws(RealtimeError) {
            guard let bytes = try file.read(limit: DDPKeptDocuments.limit) else { return nil }
            do throws(RealtimeError) {
                return try DDPKeptDocuments(parsing: bytes, server: server)
            } catch {
                throw RealtimeError(
                    .store, "the \(file.format.name) \(file.path) \(error.message)")
            }
        } catch {
            Log.write(.warning, "\(error.message); the client starts without documents")
            return nil
        }
    }

    /// Writes documents, on any thread.
    /// - Parameter number: those with a lower number than the last are not written any more.
    func save(_ kept: DDPKeptDocuments, number: Int) {
        guard process == getpid() else { return }
        do throws(RealtimeError) {
            let bytes = try kept.bytes(server: server)
            try written.withLock { written throws(RealtimeError) in
                guard number > written else { return }
                written = number
                var timeout = DDPDocumentFile.lockTimeout
                let lock = try file.lock(&timeout)
                defer { OwnFile.unlock(lock) }
                try file.replace(bytes)
            }
        } catch {
            Log.write(
                .warning, "the documents are not kept for the next run: \(error.message)")
        }
    }
}
