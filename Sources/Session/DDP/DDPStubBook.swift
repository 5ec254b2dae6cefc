import Documents
import Wire

/// What happens when documents from the server have become visible.
enum DDPVisibility: Sendable, Equatable {
    case method(DDPSession.CallID)
    case subscription(String)
}

/// The documents that stubs have written, until the server's version of them is known: their
/// snapshots, which is what the server has sent about them, and the calls that wrote them.
struct DDPStubBook: Sendable {
    private struct Document: Sendable {
        /// nil: the server has no such document.
        var snapshot: EJSONObject?
        var writers: [DDPSession.CallID]
        /// What waits until it is given back to the server.
        var waiters: [Int] = []
    }

    private struct Waiter: Sendable {
        let visibility: DDPVisibility
        /// How many documents it waits for.
        var remaining: Int
    }

    private var documents: [DocumentKey: Document] = [:]
    private var written: [DDPSession.CallID: [DocumentKey]] = [:]
    private var waiters: [Int: Waiter] = [:]
    private var lastWaiter = 0

    /// Nothing is remembered.
    var isEmpty: Bool { documents.isEmpty && written.isEmpty && waiters.isEmpty }

    mutating func removeAll() { self = DDPStubBook() }

    /// The connection of what waits is gone.
    mutating func removeWaiters() {
        waiters = [:]
        for index in documents.values.indices { documents.values[index].waiters = [] }
    }

    /// A stub has written these documents.
    mutating func wrote(_ originals: [OriginalDocument], _ id: DDPSession.CallID) {
        guard !originals.isEmpty else { return }
        for original in originals {
            documents[
                original.key, default: Document(snapshot: original.fields, writers: [])
            ].writers.append(id)
        }
        written[id] = originals.map { $0.key }
    }

    func contains(_ key: DocumentKey) -> Bool { documents[key] != nil }

    /// Changes the server's version of a document.
    mutating func edit(_ key: DocumentKey, _ body: (inout EJSONObject?) -> Void) {
        guard let index = documents.index(forKey: key) else { return }
        body(&documents.values[index].snapshot)
    }

    /// The server has sent everything that a call wrote.
    /// - Parameter isSent: whether a call was sent on this connection, and is not done.
    /// - Returns: the documents that no other call holds, with the server's version of each; and
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
                for waiter in document.waiters { visible += released(waiter) }
                free.append((key, document.snapshot))
            } else if !documents.values[index].writers.contains(where: isSent) {
                visible += releaseCalls(index)
            }
        }
        return (free, visible)
    }

    /// The last call that was sent is done with a document. Those that were not sent may not be
    /// sent before the calls that wait are done: these must not wait for them.
    private mutating func releaseCalls(
        _ index: Dictionary<DocumentKey, Document>.Index
    ) -> [DDPVisibility] {
        var visible: [DDPVisibility] = []
        var kept: [Int] = []
        for waiter in documents.values[index].waiters {
            if case .method? = waiters[waiter]?.visibility {
                visible += released(waiter)
            } else {
                kept.append(waiter)
            }
        }
        documents.values[index].waiters = kept
        return visible
    }

    private mutating func released(_ number: Int) -> [DDPVisibility] {
        guard let index = waiters.index(forKey: number) else { return [] }
        waiters.values[index].remaining -= 1
        guard waiters.values[index].remaining == 0 else { return [] }
        return [waiters.remove(at: index).value.visibility]
    }

    /// Waits until the server's version of all documents that sent calls wrote is in the store.
    /// - Returns: whether there are any; otherwise nothing waits.
    mutating func wait(
        _ visibility: DDPVisibility, isSent: (DDPSession.CallID) -> Bool
    ) -> Bool {
        var count = 0
        for index in documents.values.indices
        where documents.values[index].writers.contains(where: isSent) {
            documents.values[index].waiters.append(lastWaiter + 1)
            count += 1
        }
        guard count > 0 else { return false }
        lastWaiter += 1
        waiters[lastWaiter] = Waiter(visibility: visibility, remaining: count)
        return true
    }
}
