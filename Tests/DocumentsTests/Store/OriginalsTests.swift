@testable import Documents
import Testing
import Wire

/// What the store remembers of a stub's writes (M12).
struct OriginalsTests {
    private let a = DocumentKey("p", "a")
    private let b = DocumentKey("p", "b")
    private let c = DocumentKey("p", "c")

    private func store() throws -> DocumentStore {
        var store = DocumentStore()
        store.declare("q")
        store.declare("p")
        _ = try store.receive(
            (a, .added(document(#"{"n":1}"#))), (b, .added(document(#"{"n":2}"#))),
            (DocumentKey("q", "x"), .added(document("{}"))))
        store.beginBatch()
        store.beginOriginals()
        return store
    }

    private func modifier(_ json: String) throws -> Modifier {
        try Modifier(EJSON(parsing: json), now: 0)
    }

    @Test func eachDocumentIsRememberedAsItWasAtFirst() throws {
        var store = try store()
        _ = try store.update(b, modifier(#"{"$set":{"n":7}}"#))
        _ = try store.update(b, modifier(#"{"$set":{"n":8}}"#))
        _ = try store.insert(c, document("{}"))
        _ = store.remove(c)
        _ = store.remove(a)
        let originals = store.takeOriginals()
        #expect(originals.map { $0.key } == [b, c, a])
        #expect(try originals[0].fields == document(#"{"n":2}"#))
        #expect(originals[1].fields == nil)
        #expect(try originals[2].fields == document(#"{"n":1}"#))
        #expect(store.takeOriginals().isEmpty)
    }

    @Test func theyAreInTheOrderOfDeclaration() throws {
        var store = try store()
        _ = try store.insert(DocumentKey("undeclared", "y"), document("{}"))
        _ = store.remove(b)
        _ = store.remove(DocumentKey("q", "x"))
        _ = store.remove(a)
        #expect(
            store.takeOriginals().map { $0.key.collection + $0.key.id.wire }
                == ["qx", "pb", "pa", "undeclaredy"])
    }

    @Test func onlyWritesThatHitADocumentCount() throws {
        var store = try store()
        _ = try store.update(a, modifier(#"{"$set":{"n":1}}"#))
        _ = try store.update(c, modifier(#"{"$set":{"n":1}}"#))
        _ = store.remove(c)
        _ = try store.insert(b, document("{}"))
        #expect(store.takeOriginals().map { $0.key } == [a])
        #expect(store.endBatch() == nil)
    }

    @Test func rollingBackUndoesEverything() throws {
        var store = try store()
        let live = try store.observe(query(), in: "p")
        #expect(live.found.map { $0.id.wire } == ["a", "b"])
        let bytes = store.bytes
        _ = try store.update(b, modifier(#"{"$set":{"n":7}}"#))
        _ = store.remove(a)
        _ = try store.insert(c, document("{}"))
        _ = try store.insert(a, document(#"{"n":3}"#))
        #expect(store.ids("p") == ["b", "c", "a"])
        store.rollBack(store.takeOriginals())
        #expect(store.ids("p") == ["a", "b"])
        #expect(store.endBatch() == nil)
        #expect(store.ids("p") == ["a", "b"])
        #expect(try store.document(a) == document(#"{"n":1}"#))
        #expect(store.bytes == bytes)
        #expect(try store.receive((c, .added(document("{}"))))?.steps == ["+c"])
    }

    @Test func rollingBackLaterRestoresTheFields() throws {
        var store = try store()
        _ = store.remove(a)
        _ = try store.insert(c, document("{}"))
        let originals = store.takeOriginals()
        #expect(store.endBatch()?.marks == ["-a", "+c"])
        store.beginBatch()
        store.rollBack(originals)
        #expect(store.endBatch()?.marks == ["+a", "-c"])
        #expect(try store.document(a) == document(#"{"n":1}"#))
        #expect(store.ids("p") == ["b", "a"])
    }
}
