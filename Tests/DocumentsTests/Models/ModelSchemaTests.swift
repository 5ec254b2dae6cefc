import Testing
import Wire

@testable import Documents

/// Schemas as text. contract_ddp_models.c has those with faults.
@Suite struct ModelSchemaTests {
    private func entities(_ schema: String) throws -> [Entity] {
        try ModelSchema.entities(EJSON(parsing: schema))
    }

    @Test func namesAreCompleted() throws {
        let found = try entities(
            """
            [{"name": "Category", "relationships": [
               {"name": "children", "to": "Category", "many": true, "inverse": "parent"},
               {"name": "parent", "to": "Category", "field": "above", "inverse": "children"}]},
             {"name": "Box", "collection": "crates", "ids": "objectIDs"}]
            """)
        #expect(found.map { $0.name } == ["Category", "Box"])
        #expect(found.map { $0.collection } == ["categories", "crates"])
        #expect(found.map { $0.ids } == [.strings, .objectIDs])
        let relationships = found[0].relationships
        #expect(relationships.map { $0.field } == ["childIds", "above"])
        #expect(relationships.map { $0.destination } == ["categories", "categories"])
        #expect(relationships.allSatisfy { $0.storage })
    }

    /// Swift considers the Kelvin sign equal to the letter.
    @Test func namesAreComparedByBytes() throws {
        let found = try entities(
            #"""
            [{"name": "K", "collection": "K", "relationships": [
               {"name": "K", "to": "\#u{212A}", "field": "K"},
               {"name": "\#u{212A}", "to": "K", "field": "\#u{212A}"}]},
             {"name": "\#u{212A}", "collection": "\#u{212A}"}]
            """#)
        let map = try ModelMap(found)
        let utf8 = { (text: String?) in text.map { Array($0.utf8) } }
        #expect(utf8(map["K"]?.name) == Array("K".utf8))
        #expect(utf8(map["\u{212A}"]?.name) == [0xE2, 0x84, 0xAA])
        #expect(utf8(try map.entity(named: "\u{212A}").collection) == [0xE2, 0x84, 0xAA])
        #expect(utf8(map["K"]?.relationship("\u{212A}")?.destination) == Array("K".utf8))
        #expect(map.incoming("K").count == 1 && map.incoming("\u{212A}").count == 1)
        #expect(throws: RealtimeError.self) {
            try ModelMap(
                entities(
                    #"""
                    [{"name": "A", "relationships": [{"name": "K", "to": "B", "inverse": "K"}]},
                     {"name": "B", "relationships": [
                        {"name": "K", "to": "A", "many": true, "inverse": "\#u{212A}"}]}]
                    """#))
        }
    }

    @Test func aCompletedSchemaMeansTheSame() throws {
        let first = try entities(
            """
            [{"name": "A", "relationships": [
               {"name": "b", "to": "B", "storage": false, "inverse": "as"}]},
             {"name": "B", "relationships": [
               {"name": "as", "to": "A", "many": true, "inverse": "b"}]}]
            """)
        let second = try ModelSchema.entities(ModelSchema.value(first))
        #expect(ModelSchema.value(second) == ModelSchema.value(first))
        #expect(second.map { $0.relationships } == first.map { $0.relationships })
        _ = try ModelMap(second)
    }
}
