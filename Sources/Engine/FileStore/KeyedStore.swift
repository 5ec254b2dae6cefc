import CShims
import Glibc
import Session
import Wire

/// Keeps texts in a file that any number of objects and processes share (C14). Each change
/// reads the file under a lock and replaces it as a whole. The lock is a separate file, because a
/// lock on a file that is replaced would be lost. Files that the library did not write are refused.
struct KeyedStore {
    private let file: OwnFile
    private var format: OwnFileFormat { file.format }

    init(path: String, format: OwnFileFormat) {
        file = OwnFile(path: path, format: format)
    }

    /// - Throws: `.store` if the file is not ours, is damaged or cannot be read. A missing file is
    ///   not an error.
    func load(_ key: String) throws(RealtimeError) -> String? { try parse(try read())[key] }

    /// Checks that texts can be stored, as far as that can be known in advance.
    func check() throws(RealtimeError) {
        // Checked first, so that no lock file is made for a file that is not ours.
        _ = try read()
        _ = close(try file.openLock())
    }

    /// Stores texts; "" removes the key. A damaged file is replaced by a new one.
    /// - Parameter lockTimeout: how long to wait for the lock; reduced by the time that was spent.
    /// - Parameter texts: called once the lock is held.
    /// - Returns: the indices of texts that do not fit: a larger file could not be read again.
    @discardableResult func save(
        _ lockTimeout: inout Duration, _ texts: () -> [(key: String, text: String)]
    ) throws(RealtimeError) -> Set<Int> {
        _ = try read()
        let lock = try file.lock(&lockTimeout)
        defer { OwnFile.unlock(lock) }
        let bytes = try read()
        var content: KeyedFile
        do throws(RealtimeError) {
            content = try parse(bytes)
        } catch {
            Log.write(.warning, "\(error.message); a new one replaces it")
            content = KeyedFile(format)
        }
        var count = content.bytes.count
        var refused: Set<Int> = []
        var isChanged = false
        for (index, (key, text)) in texts().enumerated() {
            let old = content[key] ?? ""
            guard !old.utf8.elementsEqual(text.utf8) else { continue }
            let growth = KeyedFile.count(key, text) - KeyedFile.count(key, old)
            guard growth <= 0 || count + growth <= KeyedFile.limit else {
                refused.insert(index)
                continue
            }
            content[key] = text
            count += growth
            isChanged = true
        }
        if isChanged { try file.replace(content.bytes) }
        return refused
    }

    /// The error for texts that `save` did not accept.
    var isFull: RealtimeError {
        RealtimeError(
            .store, "the \(format.name) \(file.path) is full: \(KeyedFile.limit) bytes are allowed")
    }

    /// Reads the file; nil if there is none.
    private func read() throws(RealtimeError) -> [UInt8]? { try file.read(limit: KeyedFile.limit) }

    private func parse(_ bytes: [UInt8]?) throws(RealtimeError) -> KeyedFile {
        guard let bytes else { return KeyedFile(format) }
        do throws(RealtimeError) {
            return try KeyedFile(parsing: bytes, format)
        } catch {
            throw RealtimeError(.store, "the \(format.name) \(file.path) \(error.message)")
        }
    }
}
