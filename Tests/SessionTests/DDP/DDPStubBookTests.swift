import Documents
import Testing
import Wire

@testable import Session

/// What waits for documents that stubs have written, against a plain model: each waiter has the set
/// of the documents that it waits for.
struct DDPStubBookTests {
    private struct Model {
        struct Waiter {
            let visibility: DDPVisibility
            var documents: Set<DocumentKey>
        }

        var writers: [DocumentKey: Set<DDPSession.CallID>] = [:]
        var sent: Set<DDPSession.CallID> = []
        var waiters: [Waiter] = []

        func isHeld(_ key: DocumentKey) -> Bool {
            writers[key]?.contains { sent.contains($0) } ?? false
        }

        mutating func wait(_ visibility: DDPVisibility) -> Bool {
            let held = Set(writers.keys.filter { isHeld($0) })
            if !held.isEmpty { waiters.append(Waiter(visibility: visibility, documents: held)) }
            return !held.isEmpty
        }

        mutating func finish(_ id: DDPSession.CallID) -> [DDPVisibility] {
            for key in writers.keys where writers[key]?.remove(id) != nil {
                guard writers[key]?.isEmpty ?? true else { continue }
                writers[key] = nil
                for index in waiters.indices { waiters[index].documents.remove(key) }
            }
            let free = waiters.filter { $0.documents.isEmpty }.map { $0.visibility }
            waiters.removeAll { $0.documents.isEmpty }
            return free
        }
    }

    @Test(arguments: 0..<200) func releasesWhatWaits(seed: UInt64) {
        var random = SeededNumbers(state: seed)
        var book = DDPStubBook()
        var model = Model()
        var calls: [DDPSession.CallID] = []
        var lastCall: DDPSession.CallID = 0
        for step in 0..<400 {
            switch random.next() % 12 {
            case 0...3:
                lastCall += 1
                let keys = Set((0...random.next() % 3).map { _ in key(random.next() % 12) })
                book.wrote(
                    keys.sorted { $0.collection < $1.collection }.map { original($0) }, lastCall)
                for key in keys { model.writers[key, default: []].insert(lastCall) }
                calls.append(lastCall)
                guard random.next() % 4 > 0 else { continue }
                book.sent(lastCall)
                model.sent.insert(lastCall)
            case 4, 5:
                guard let id = calls.randomElement(using: &random) else { continue }
                book.sent(id)
                model.sent.insert(id)
            case 6, 7:
                let visibility: DDPVisibility =
                    random.next() % 2 == 0 ? .method(UInt64(step)) : .subscription("\(step)")
                let (waits, expected) = (book.wait(visibility), model.wait(visibility))
                #expect(waits == expected)
            case 8 where random.next() % 4 == 0:
                book.connectionLost()
                model.sent = []
            case 9 where random.next() % 12 == 0:
                book.removeWaiters()
                model.waiters = []
            default:
                guard let place = calls.indices.randomElement(using: &random) else { continue }
                let id = calls.remove(at: place)
                model.sent.remove(id)
                let sent = model.sent
                let free = book.finish(id) { sent.contains($0) }.visible
                let expected = model.finish(id)
                #expect(names(free) == names(expected), "step \(step)")
            }
        }
        for id in calls {
            model.sent.remove(id)
            let sent = model.sent
            let free = book.finish(id) { sent.contains($0) }.visible
            let expected = model.finish(id)
            #expect(names(free) == names(expected))
        }
        #expect(book.isEmpty)
    }

    private let id: DocumentID

    init() throws { id = try #require(DocumentID(wire: "a")) }

    private func key(_ number: UInt64) -> DocumentKey {
        DocumentKey(collection: "\(number)", id: id)
    }

    private func names(_ visible: [DDPVisibility]) -> [String] { visible.map { "\($0)" }.sorted() }

    private func original(_ key: DocumentKey) -> OriginalDocument {
        var store = DocumentStore()
        store.beginOriginals()
        store.beginBatch()
        _ = store.insert(key, EJSONObject())
        _ = store.endBatch()
        return store.takeOriginals()[0]
    }
}
