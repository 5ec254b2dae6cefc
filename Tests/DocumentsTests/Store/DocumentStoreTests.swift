@testable import Documents
import Testing
import Wire

/// The groups METDocumentCacheTests and METDatabaseTests of Meteor's iOS client.
struct DocumentStoreTests {
    private let a = DocumentKey("p", "a")
    private let b = DocumentKey("p", "b")

    private func store(_ documents: [(DocumentKey, String)] = []) throws -> DocumentStore {
        var store = DocumentStore()
        store.declare("p")
        for (key, json) in documents { _ = store.buffer(.added(try document(json)), for: key) }
        _ = store.flush()
        return store
    }

    // MARK: Each update on a document that is there or not (M10)

    @Test func addedInsertsADocument() throws {
        var store = try store()
        let notification = try store.receive((a, .added(document(#"{"n":1}"#))))
        #expect(notification?.marks == ["+a"])
        #expect(try store.document(a) == document(#"{"n":1}"#))
        #expect(store.count(of: "p") == 1)
    }

    @Test func addedMergesIntoADocumentThatIsThere() throws {
        var store = try store([(a, #"{"n":1,"m":1}"#)])
        let notification = try store.receive((a, .added(document(#"{"n":2,"k":3}"#))))
        #expect(notification?.marks == ["*a"])
        let details = try #require(notification?.changes.first?.details)
        #expect(try details.fields == document(#"{"n":2,"k":3}"#))
        #expect(details.cleared.isEmpty)
        #expect(try store.document(a) == document(#"{"n":2,"m":1,"k":3}"#))
    }

    @Test func changedSetsAndClearsFields() throws {
        var store = try store([(a, #"{"n":1,"m":1,"k":{"x":1}}"#)])
        let notification = try store.receive(
            (a, .changed(fields: document(#"{"n":2,"k":{"y":2}}"#), cleared: ["m", "none"])))
        let details = try #require(notification?.changes.first?.details)
        #expect(try details.fields == document(#"{"n":2,"k":{"y":2}}"#))
        #expect(details.cleared == ["m"])
        #expect(try store.document(a) == document(#"{"n":2,"k":{"y":2}}"#))
    }

    @Test func changedInsertsADocumentThatIsNotThere() throws {
        var store = try store()
        let notification = try store.receive(
            (a, .changed(fields: document(#"{"n":2}"#), cleared: ["m"])))
        #expect(notification?.marks == ["+a"])
        #expect(try store.document(a) == document(#"{"n":2}"#))
    }

    @Test func changedWithEqualValuesChangesNothing() throws {
        var store = try store([(a, #"{"n":{"x":1,"y":2}}"#)])
        let notification = try store.receive(
            (a, .changed(fields: document(#"{"n":{"y":2,"x":1}}"#), cleared: ["none"])))
        #expect(notification == nil)
        #expect(store.document(a).map { EJSON.object($0).text } == #"{"n":{"x":1,"y":2}}"#)
    }

    @Test func removedRemovesADocument() throws {
        var store = try store([(a, "{}")])
        #expect(store.receive((a, .removed))?.marks == ["-a"])
        #expect(store.document(a) == nil)
        #expect(store.receive((a, .removed)) == nil)
        #expect(store.count(of: "p") == 0)
    }

    @Test func replacedReplacesTheWholeDocument() throws {
        var store = try store([(a, #"{"n":1,"m":1}"#)])
        let notification = try store.receive((a, .replaced(document(#"{"n":2}"#))))
        let details = try #require(notification?.changes.first?.details)
        #expect(try details.fields == document(#"{"n":2}"#))
        #expect(details.cleared == ["m"])
        #expect(store.receive((a, .replaced(nil)))?.marks == ["-a"])
        #expect(store.receive((a, .replaced(nil))) == nil)
        #expect(try store.receive((a, .replaced(document("{}"))))?.marks == ["+a"])
    }

    @Test func fieldsNamedIDAreIgnored() throws {
        var store = try store()
        _ = try store.receive(
            (a, .added(document(#"{"_id":"evil","n":1}"#))),
            (b, .replaced(document(#"{"_id":"evil","n":1}"#))))
        #expect(try store.document(a) == document(#"{"n":1}"#))
        #expect(try store.document(b) == document(#"{"n":1}"#))
        #expect(
            try store.receive((a, .changed(fields: document(#"{"_id":"x"}"#), cleared: []))) == nil)
    }

    @Test func anUndeclaredCollectionKeepsItsData() throws {
        var store = DocumentStore()
        _ = try store.receive((DocumentKey("late", "a"), .added(document("{}"))))
        store.declare("late", ids: .objectIDs)
        #expect(store.ids("late") == ["a"])
        guard case .objectIDs = store.newIDs(of: "late") else {
            Issue.record("ids of another kind")
            return
        }
    }

    @Test func namesAndIDsAreComparedByteForByte() throws {
        var store = DocumentStore()
        let composed = "caf\u{e9}"
        let decomposed = "cafe\u{301}"
        _ = try store.receive(
            (DocumentKey(composed, composed), .added(document("{}"))),
            (DocumentKey(composed, decomposed), .added(document("{}"))),
            (DocumentKey(decomposed, composed), .added(document("{}"))))
        #expect(store.count(of: composed) == 2)
        #expect(store.count(of: decomposed) == 1)
        #expect(DocumentKey(composed, "a") != DocumentKey(decomposed, "a"))
    }

    // MARK: Writes of the program

    @Test func writesAreVisibleBeforeTheBatchEnds() throws {
        var store = try store([(a, #"{"n":1}"#)])
        store.beginBatch()
        let isInserted = try store.insert(b, document(#"{"n":5}"#))
        #expect(isInserted)
        #expect(store.ids("p") == ["a", "b"])
        #expect(try store.update(a, modifier(#"{"$inc":{"n":1}}"#)) == 1)
        #expect(try store.document(a) == document(#"{"n":2}"#))
        #expect(
            try store.find(query(#"{"n":{"$gt":1}}"#), in: "p").map { $0.id.wire } == ["a", "b"])
        #expect(store.remove(a) == 1)
        #expect(store.document(a) == nil)
        #expect(store.endBatch()?.marks == ["+b", "-a"])
    }

    @Test func writesToMissingDocumentsDoNothing() throws {
        var store = try store([(a, #"{"n":1}"#)])
        store.beginBatch()
        #expect(try store.update(b, modifier(#"{"$set":{"n":1}}"#)) == 0)
        #expect(store.remove(b) == 0)
        let isInserted = try store.insert(a, document(#"{"n":9}"#))
        #expect(!isInserted)
        #expect(store.remove(DocumentKey("none", "a")) == 0)
        #expect(store.endBatch() == nil)
        #expect(try store.document(a) == document(#"{"n":1}"#))
    }

    @Test func aModifierThatFailsChangesNothing() throws {
        var store = try store([(a, #"{"n":"x","m":1}"#)])
        store.beginBatch()
        #expect(throws: RealtimeError.self) {
            try store.update(a, modifier(#"{"$set":{"m":2},"$inc":{"n":1}}"#))
        }
        #expect(store.endBatch() == nil)
        #expect(try store.document(a) == document(#"{"n":"x","m":1}"#))
    }

    // MARK: Many documents

    @Test func manyDocumentsAreFoundAfterManyRemovals() throws {
        var store = DocumentStore()
        for round in 0..<5 {
            for number in 0..<1_000 {
                let key = DocumentKey("p", "\(round)-\(number)")
                _ = store.buffer(.added(try document(#"{"n":\#(number)}"#)), for: key)
            }
            _ = store.flush()
            for number in 0..<990 {
                _ = store.buffer(.removed, for: DocumentKey("p", "\(round)-\(number)"))
            }
            _ = store.flush()
        }
        #expect(store.count(of: "p") == 50)
        #expect(store.ids("p").first == "0-990")
        #expect(store.ids("p").last == "4-999")
        #expect(try store.document(DocumentKey("p", "2-995")) == document(#"{"n":995}"#))
    }

    @Test func documentsWithVeryManyFieldsAreMergedByIndex() throws {
        var store = DocumentStore()
        var wide = EJSONObject()
        for number in 0..<3_000 { wide.append("f\(number)", .number(Double(number))) }
        _ = store.receive((a, .added(wide)))
        var changes = EJSONObject()
        for number in 1_500..<4_500 {
            changes.append("f\(number)", .number(Double(number % 2_000)))
        }
        let notification = store.receive((a, .changed(fields: changes, cleared: ["f0"])))
        let details = try #require(notification?.changes.first?.details)
        #expect(details.fields.count == 2_500)
        #expect(details.cleared == ["f0"])
        let document = try #require(store.document(a))
        #expect(document.count == 4_499)
        #expect(document["f1499"] == .number(1_499))
        #expect(document["f2000"] == .number(0))
        #expect(document.fields.last?.name == "f4499")
    }

    private func modifier(_ json: String) throws -> Modifier {
        try Modifier(EJSON(parsing: json), now: 0)
    }
}
