import Realtime
import Testing

/// What models must agree on.
@Suite struct ModelMapTests {
    /// - Returns: the error's message.
    private func fault(_ models: any DDPModel.Type...) throws -> String {
        let client = try DDPClient("ws://127.0.0.1:1")
        let error = #expect(throws: RealtimeError.self) { try DDPModels(client, models) }
        return error?.message ?? ""
    }

    struct Plain: DDPModel { var id = String.randomID() }
    struct Same: DDPModel {
        static let collection = "plains"
        var id = String.randomID()
    }
    @Test func twoModelsOfOneCollection() throws {
        #expect(try fault(Plain.self, Same.self).contains("have the same collection, plains"))
    }

    struct Lonely: DDPModel {
        var id = String.randomID()
        @Relationship(storage: false) var plain: Plain.Reference? = nil
    }
    @Test func aRelationshipNeedsStorage() throws {
        #expect(
            try fault(Lonely.self)
                == "the relationship Lonely.plain has neither storage nor an inverse")
    }

    struct Wrong: DDPModel {
        var id = String.randomID()
        @Relationship(inverse: "nothing") var plain: Plain.Reference? = nil
    }
    @Test func theInverseMustExist() throws {
        #expect(
            try fault(Wrong.self)
                == "the relationship Wrong.plain has the inverse nothing, which Plain does not have"
        )
    }

    struct Left: DDPModel {
        var id = String.randomID()
        @Relationship(inverse: "left") var right: Right.Reference? = nil
        @Relationship(inverse: "left") var second: Right.Reference? = nil
    }
    struct Right: DDPModel {
        var id = String.randomID()
        @Relationship(inverse: "right") var left: Left.Reference? = nil
    }
    @Test func theInverseMustAgree() throws {
        #expect(
            try fault(Left.self)
                == "the relationship Left.second has the inverse Right.left, whose inverse is "
                + "lefts.right")
    }

    struct Up: DDPModel {
        var id = String.randomID()
        @Relationship(inverse: "up", storage: false) var down: [Down.Reference] = []
    }
    struct Down: DDPModel {
        var id = String.randomID()
        @Relationship(inverse: "down", storage: false) var up: [Up.Reference] = []
    }
    @Test func oneEndMustHaveStorage() throws {
        #expect(try fault(Up.self).contains("has storage at neither end"))
    }

    /// `CodingKeys` that name the field of a relationship are taken at their word.
    struct Renamed: DDPModel {
        var id = String.randomID()
        var plain: Plain.Reference?
        var others: [Plain.Reference] = []

        enum CodingKeys: String, CodingKey {
            case id = "_id"
            case plain = "owner"
            case others
        }
    }
    @Test func codingKeysNameFields() throws {
        let client = try DDPClient("ws://127.0.0.1:1")
        let models = try DDPModels(client, Renamed.self)
        let plain = Plain()
        try models.insert(Renamed(id: "a", plain: plain.reference, others: [plain.reference]))
        #expect(
            try client.collection("renameds")["a"]?.fields
                == ["owner": .string(plain.id), "otherIds": [.string(plain.id)]])
        #expect(try models.find(Renamed.self, id: "a")?.plain == plain.reference)
    }

    /// Swift considers the Kelvin sign equal to the letter.
    struct Kelvin: DDPModel {
        var id = String.randomID()
        var letter = ""
        var sign: Plain.Reference?

        enum CodingKeys: String, CodingKey {
            case id = "_id"
            case letter = "K"
            case sign = "\u{212A}"
        }
    }
    @Test func fieldsAreComparedByBytes() throws {
        let client = try DDPClient("ws://127.0.0.1:1")
        let models = try DDPModels(client, Kelvin.self)
        let plain = Plain()
        try models.insert(Kelvin(id: "a", letter: "l", sign: plain.reference))
        #expect(
            try client.collection("kelvins")["a"]?.fields
                == ["K": "l", "\u{212A}": .string(plain.id)])
        #expect(try models.find(Kelvin.self, id: "a")?.letter == "l")
    }

    final class Shared: DDPModel {
        let id: String
        init() { id = String.randomID() }
    }
    @Test func aClassIsNotAModel() throws {
        #expect(try fault(Shared.self).contains("Shared is a class: a model must be a struct"))
    }

    struct Nameless: DDPModel {
        var id = String.randomID()
        var name = ""
        enum CodingKeys: CodingKey { case name }
    }
    @Test func theIDMustBeCoded() throws {
        #expect(
            try fault(Nameless.self) == "Nameless cannot be encoded: its CodingKeys lack the id")
    }

    struct Twice: DDPModel {
        var id = String.randomID()
        var plainId: String?
        var plain: Plain.Reference?
    }
    struct Again: DDPModel {
        var id = String.randomID()
        var plain: Plain.Reference?
        @Relationship(field: "plainId") var other: [Plain.Reference] = []
    }
    @Test func eachPropertyHasItsOwnField() throws {
        #expect(
            try fault(Twice.self) == "Twice.plain and Twice.plainId have the same field, plainId")
        #expect(
            try fault(Again.self) == "Again.other and Again.plain have the same field, plainId")
    }

    @Test func anotherModelOfTheSameCollection() throws {
        let client = try DDPClient("ws://127.0.0.1:1")
        let models = try DDPModels(client, Plain.self)
        let error = #expect(throws: RealtimeError.self) { try models.find(Same.self) }
        #expect(error?.code == .invalidArgument)
        #expect(error?.message.contains("Same is not one of the models") ?? false)
    }

    struct Unencodable: DDPModel {
        var id = String.randomID()
        var number = Int.max
    }
    @Test func theDefaultsMustBeEncodable() throws {
        #expect(try fault(Unencodable.self).contains("Unencodable cannot be encoded"))
    }

    @Test func idsAreDrawn() {
        #expect(String.randomID().utf8.count == 17 && String.randomID() != String.randomID())
        #expect(ObjectID.randomID() != ObjectID.randomID())
    }
}
