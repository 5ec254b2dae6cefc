import CShims
import Session
import Wire

// Keeping documents. The file is written by a thread of its own, because that takes long for many
// documents.
extension DDPConnection {
    /// Starts to write the documents.
    func keepDocuments() {
        guard let writer = documentWriter() else { return }
        var thread: UInt = 0
        let code = LibraryThread.start("realtime-file", &thread) { writer.run() }
        if code == 0 { shim_thread_detach(thread) } else { writer.run() }
    }

    /// Writes what has changed since the last time, on this thread: the client is closed.
    func keepLastDocuments() {
        documentWriter { $0.endKeeping() }?.save()
    }

    /// - Parameter isWanted: whether there is something to write.
    private func documentWriter(
        _ isWanted: (inout DDPSession) -> Bool = { _ in true }
    ) -> DDPDocumentWriter? {
        shared.locked {
            guard let file = shared.documentFile, isWanted(&shared.session) else { return nil }
            shared.lastKept += 1
            return DDPDocumentWriter(
                self, file, shared.session.keptDocuments(), number: shared.lastKept)
        }
    }

    fileprivate func keptDocuments(took time: Duration) {
        loop.enqueue { [self] in
            guard !isClosed else { return }
            shared.locked { shared.session.keptDocuments(took: time, now: Loop.now()) }
            schedule()
        }
    }
}

/// Documents on their way to the file.
private final class DDPDocumentWriter: Sendable {
    private let client: DDPConnection
    private let file: DDPDocumentFile
    private let kept: DDPKeptDocuments
    private let number: Int

    init(
        _ client: DDPConnection, _ file: DDPDocumentFile, _ kept: DDPKeptDocuments, number: Int
    ) {
        self.client = client
        self.file = file
        self.kept = kept
        self.number = number
    }

    func save() { file.save(kept, number: number) }

    func run() {
        let start = Loop.now()
        save()
        client.keptDocuments(took: Loop.now() - start)
    }
}
