import Documents
import Wire

/// What happens when documents from the server have become visible.
enum DDPVisibility: Sendable, Equatable {
    case method(DDPSession.CallID)
    case subscription(String)
}

/// The documents that stubs have written, until the server's version of them is known: their
/// snapshots, which is what the server has sent about them, and the calls that wrote them.
///
/// A document is *held* while a call that was sent on this connection writes it, and *given back*
/// when no call writes it any more. Calls and subscriptions wait until all documents that were held
/// when they came are given back: see `DDPStubWaiters`.
struct DDPStubBook: Sendable {
    private struct Document: Sendable {
        /// nil: the server has no such document.
        var snapshot: EJSONObject?
        /// How the document was when a session ended of which it is; nil if the present one began.
        var former: EJSONObject?
        var writers: [DDPSession.CallID]
        /// What the server has sent into the snapshot, as the store estimates its size.
        var bytes = 0
        var hold = DDPStubHold()
    }

    private var documents: [DocumentKey: Document] = [:]
    private var written: [DDPSession.CallID: [DocumentKey]] = [:]
    private var waiters = DDPStubWaiters()
    /// The estimated size of the snapshots that the server has changed.
    private(set) var bytes = 0

    /// Nothing is remembered.
    var isEmpty: Bool { documents.isEmpty && written.isEmpty && waiters.isEmpty }

    mutating func removeAll() { self = DDPStubBook() }

    /// The connection of what waits is gone.
    mutating func removeWaiters() { waiters.removeAll() }

    /// A stub has written these documents.
    /// - Parameter areFormer: they are of a session that has ended, and the present one may have
    ///   others: of this one's documents nothing is known.
    mutating func wrote(
        _ originals: [OriginalDocument], _ id: DDPSession.CallID, areFormer: Bool = false
    ) {
        guard !originals.isEmpty else { return }
        for original in originals {
            var document = Document(snapshot: areFormer ? nil : original.fields, writers: [])
            if areFormer { document.former = original.fields }
            documents[original.key, default: document].writers.append(id)
        }
        written[id] = originals.map { $0.key }
    }

    /// The present session will send no more, so that the documents stay those of the one before.
    mutating func keepFormer() {
        for index in documents.values.indices where documents.values[index].snapshot == nil {
            documents.values[index].snapshot = documents.values[index].former
        }
    }

    /// A call was sent: it holds the documents that its stub has written.
    mutating func sent(_ id: DDPSession.CallID) {
        for key in written[id] ?? [] {
            guard let index = documents.index(forKey: key) else { continue }
            waiters.hold(&documents.values[index].hold)
        }
    }

    /// No call counts as sent any more. What waits still waits for the same documents, in case the
    /// server resumes the session.
    mutating func connectionLost() {
        for index in documents.values.indices {
            waiters.release(&documents.values[index].hold)
        }
    }

    func contains(_ key: DocumentKey) -> Bool { documents[key] != nil }

    /// The server's versions of the documents; nil where it has none.
    var snapshots: [DocumentKey: EJSONObject?] { documents.mapValues { $0.snapshot } }

    /// Changes the server's version of a document.
    mutating func edit(_ key: DocumentKey, _ body: (inout EJSONObject?) -> Void) {
        guard let index = documents.index(forKey: key) else { return }
        body(&documents.values[index].snapshot)
        let size = documents.values[index].snapshot?.storedBytes ?? 0
        bytes += size - documents.values[index].bytes
        documents.values[index].bytes = size
    }

    /// The server has sent everything that a call wrote.
    /// - Parameter isSent: whether a call was sent on this connection, and is not done.
    /// - Returns: the documents that no other call writes, with the server's version of each; and
    ///   what need not wait any longer.
    mutating func finish(
        _ id: DDPSession.CallID, isSent: (DDPSession.CallID) -> Bool
    ) -> (documents: [(DocumentKey, EJSONObject?)], visible: [DDPVisibility]) {
        var free: [(DocumentKey, EJSONObject?)] = []
        var visible: [DDPVisibility] = []
        for key in written.removeValue(forKey: id) ?? [] {
            guard let index = documents.index(forKey: key) else { continue }
            documents.values[index].writers.removeAll { $0 == id }
            if documents.values[index].writers.isEmpty {
                let document = documents.remove(at: index).value
                bytes -= document.bytes
                visible += waiters.gaveBack(document.hold)
                free.append((key, document.snapshot))
            } else if !documents.values[index].writers.contains(where: isSent) {
                waiters.release(&documents.values[index].hold)
            }
        }
        return (free, visible)
    }

    /// Waits until the server's version of all documents that sent calls wrote is in the store.
    /// - Returns: whether there are any; otherwise nothing waits.
    mutating func wait(_ visibility: DDPVisibility) -> Bool { waiters.wait(visibility) }

    /// The calls that wait, which do so no longer.
    mutating func takeWaitingCalls() -> [DDPVisibility] { waiters.takeCalls() }
}
