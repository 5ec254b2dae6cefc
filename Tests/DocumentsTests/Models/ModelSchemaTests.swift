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
