@testable import Documents
import Testing
import Wire

/// The groups METDatabaseChangesTests and METDocumentChangeDetailsTests of Meteor's iOS client, and
/// "buffering data" of its JavaScript client.
struct BufferTests {
    private let a = DocumentKey("p", "a")
    private let b = DocumentKey("p", "b")
    private let c = DocumentKey("p", "c")

    @Test func updatesShowAtTheFlush() throws {
        var store = DocumentStore()
        #expect(!store.isBuffering)
        let isAccepted = try store.buffer(.added(document(#"{"n":1}"#)), for: a)
        #expect(isAccepted)
        #expect(store.isBuffering)
        #expect(store.document(a) == nil)
        #expect(store.flush()?.marks == ["+a"])
        #expect(!store.isBuffering)
        #expect(store.flush() == nil)
    }

    @Test func severalChangesOfADocumentCollapse() throws {
        var store = DocumentStore()
        let notification = try store.receive(
            (a, .added(document(#"{"n":1,"m":1}"#))),
            (b, .added(document("{}"))),
            (a, .changed(fields: document(#"{"n":2}"#), cleared: ["m"])))
        #expect(notification?.marks == ["+a", "+b"])
        #expect(try notification?.changes.first?.after == document(#"{"n":2}"#))
    }

    @Test func aDocumentThatIsAsBeforeIsLeftOut() throws {
        var store = DocumentStore()
        _ = try store.receive((a, .added(document(#"{"n":1}"#))))
        #expect(
            try store.receive(
                (a, .changed(fields: document(#"{"n":2}"#), cleared: [])),
                (b, .added(document("{}"))), (b, .removed),
                (a, .changed(fields: document(#"{"n":1}"#), cleared: []))) == nil)
        let notification = try store.receive(
            (a, .removed), (c, .added(document("{}"))), (a, .added(document(#"{"n":1}"#))))
        #expect(notification?.marks == ["+c"])
    }

    @Test func removedAndAddedAgainIsOneChange() throws {
        var store = DocumentStore()
        _ = try store.receive((a, .added(document(#"{"n":1,"m":1}"#))))
        let notification = try store.receive((a, .removed), (a, .added(document(#"{"n":2}"#))))
        #expect(notification?.marks == ["*a"])
        let details = try #require(notification?.changes.first?.details)
        #expect(try details.fields == document(#"{"n":2}"#))
        #expect(details.cleared == ["m"])
    }

    @Test func aNewDocumentHasAllFieldsChangedAndARemovedOneCleared() throws {
        var store = DocumentStore()
        let added = try store.receive((a, .added(document(#"{"n":1,"m":1}"#))))
        #expect(try added?.changes.first?.details.fields == document(#"{"n":1,"m":1}"#))
        let removed = store.receive((a, .removed))
        #expect(removed?.changes.first?.details.fields.isEmpty == true)
        #expect(removed?.changes.first?.details.cleared == ["n", "m"])
    }

    @Test func missingIsNotNull() throws {
        var store = DocumentStore()
        _ = try store.receive((a, .added(document("{}"))))
        let notification = try store.receive(
            (a, .changed(fields: document(#"{"n":null}"#), cleared: [])))
        #expect(try notification?.changes.first?.details.fields == document(#"{"n":null}"#))
    }

    // MARK: Emptying

    @Test func emptyingReportsOnlyTheDifference() throws {
        var store = DocumentStore()
        _ = try store.receive(
            (a, .added(document(#"{"n":1}"#))), (b, .added(document(#"{"n":1}"#))),
            (c, .added(document(#"{"n":1}"#))), (DocumentKey("q", "x"), .added(document("{}"))))
        _ = try store.buffer(.added(document(#"{"n":1}"#)), for: b)
        _ = try store.buffer(.added(document(#"{"n":2}"#)), for: a)
        #expect(store.ids("p") == ["a", "b", "c"])
        #expect(store.flush(emptying: true)?.marks == ["*a", "-c", "-x"])
        #expect(store.ids("p") == ["b", "a"])
        #expect(store.ids("q") == [])
    }

    @Test func emptyingWithoutUpdatesRemovesEverything() throws {
        var store = DocumentStore()
        _ = try store.receive((a, .added(document("{}"))))
        #expect(store.flush(emptying: true)?.marks == ["-a"])
        #expect(store.flush(emptying: true) == nil)
        #expect(try store.receive((a, .added(document("{}"))))?.marks == ["+a"])
    }

    @Test func aDroppedBufferIsNotApplied() throws {
        var store = DocumentStore()
        _ = try store.buffer(.added(document("{}")), for: a)
        store.dropBuffer()
        #expect(store.flush() == nil)
    }

    // MARK: Batches

    @Test func nestedBatchesAreOneNotification() throws {
        var store = DocumentStore()
        store.beginBatch()
        _ = try store.insert(a, document("{}"))
        store.beginBatch()
        _ = try store.insert(b, document("{}"))
        #expect(store.endBatch() == nil)
        #expect(store.isInBatch)
        _ = try store.insert(c, document("{}"))
        #expect(store.endBatch()?.marks == ["+a", "+b", "+c"])
        #expect(!store.isInBatch)
    }

    @Test func aFlushInABatchIsAPartOfIt() throws {
        var store = DocumentStore()
        _ = try store.buffer(.added(document("{}")), for: a)
        store.beginBatch()
        #expect(store.flush() == nil)
        #expect(store.ids("p") == ["a"])
        _ = try store.insert(b, document("{}"))
        #expect(store.endBatch()?.marks == ["+a", "+b"])
    }

    @Test func aBatchThatChangesNothingIsSilent() throws {
        var store = DocumentStore()
        store.beginBatch()
        _ = try store.insert(a, document("{}"))
        _ = store.remove(a)
        #expect(store.endBatch() == nil)
        #expect(try store.receive((a, .added(document("{}"))))?.marks == ["+a"])
    }

    // MARK: Limits

    /// How many updates of different documents a store takes.
    private func accepted(
        _ update: DocumentUpdate, flushing: Bool, by store: inout DocumentStore
    ) throws -> Int {
        var count = 0
        while store.buffer(update, for: DocumentKey("p", "\(count)")) {
            if flushing { _ = store.flush() }
            count += 1
            try #require(count < 100)
        }
        return count
    }

    @Test func theBufferIsLimited() throws {
        var store = DocumentStore(maximumBytes: 10_000)
        let fields = try document(#"{"text":"\#(String(repeating: "x", count: 1_000))"}"#)
        let count = try accepted(.added(fields), flushing: false, by: &store)
        #expect((5...9).contains(count))
        _ = store.flush()
        #expect(store.count(of: "p") == count)
    }

    @Test func documentsAreLimited() throws {
        var store = DocumentStore(maximumBytes: 10_000)
        let fields = try document(#"{"text":"\#(String(repeating: "x", count: 1_000))"}"#)
        let count = try accepted(.added(fields), flushing: true, by: &store)
        #expect((7...11).contains(count))
        let isAccepted = store.buffer(.removed, for: DocumentKey("p", "0"))
        #expect(!isAccepted)
    }

    /// Long parts of values that are not texts.
    @Test(arguments: [
        #"{"$regexp":"X","$flags":""}"#, #"{"$type":"X","$value":1}"#,
        #"{"$type":"t","$value":"X"}"#, #"{"$type":"Decimal","$value":"X"}"#, #"["X"]"#,
    ])
    func allPartsOfValuesCountForTheLimit(form: String) throws {
        let long = String(repeating: "1", count: 1_000)
        let parts = form.split(separator: "X", omittingEmptySubsequences: false).map(String.init)
        let fields = try document(#"{"v":\#(parts.joined(separator: long))}"#)
        var store = DocumentStore(maximumBytes: 10_000)
        let count = try accepted(.added(fields), flushing: true, by: &store)
        #expect((6...11).contains(count))
    }

    @Test func placesCountForTheLimit() throws {
        let long = try #require(DocumentID(.string(String(repeating: "x", count: 1_000))))
        var store = DocumentStore(maximumBytes: 10_000)
        let update = DocumentUpdate.addedBefore([:], before: long)
        let count = try accepted(update, flushing: false, by: &store)
        #expect((5...9).contains(count))
    }

    @Test func collectionsCountForTheLimit() throws {
        var store = DocumentStore(maximumBytes: 100_000)
        var number = 0
        while store.buffer(.removed, for: DocumentKey("collection \(number)", "a")) {
            _ = store.flush()
            number += 1
            try #require(number < 1_000)
        }
        #expect(number > 100)
    }

    @Test func theSizeOfAnEmptiedStoreIsThatOfItsCollections() throws {
        var store = DocumentStore()
        _ = store.receive((a, .removed))
        let empty = store.bytes
        _ = try store.receive(
            (a, .added(document(#"{"n":[1,"two",{"three":3}],"t":"text"}"#))),
            (b, .added(document(#"{"n":{"$date":5},"b":{"$binary":"AAAA"}}"#))))
        #expect(store.bytes > empty + 200)
        _ = try store.receive(
            (a, .changed(fields: document(#"{"n":"shorter","x":1}"#), cleared: ["t"])),
            (b, .replaced(document(#"{"n":[[[]]]}"#))))
        _ = store.receive((a, .removed))
        _ = store.flush(emptying: true)
        #expect(store.bytes == empty)
    }
}
