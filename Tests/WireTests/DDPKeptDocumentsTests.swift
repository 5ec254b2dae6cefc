import Testing

@testable import Wire

struct DDPKeptDocumentsTests {
    private static let server = "wss://example.org/websocket"

    private static func document(
        _ wire: String, _ fields: EJSONObject
    ) throws -> (id: DocumentID, fields: EJSONObject) {
        (try #require(DocumentID(wire: wire)), fields)
    }

    private let kept: DDPKeptDocuments

    init() throws {
        let money = EJSON.custom(EJSONCustom(type: "Money", value: ["$date": "\n"]))
        let first = try Self.document(
            "a", ["name": "line\nbreak", "made": .date(5), "n": [1, .null, ["x": 2]]])
        let second = try Self.document("b", [:])
        let third = try Self.document("0123456789abcdef01234567", ["money": money])
        kept = DDPKeptDocuments(
            userID: "u1", subscriptions: [["lists", 5], ["todos", ["list": "a\nb"]]],
            collections: [
                .init(name: "lists", documents: [first, second]),
                .init(name: "a \"name\"", documents: [third]),
            ])
    }

    private func text(_ kept: DDPKeptDocuments) -> String {
        let documents = kept.collections.map { collection in
            "\(collection.name): "
                + collection.documents.map { "\($0.id.wire) \(EJSON.object($0.fields).text)" }
                .joined(separator: ", ")
        }
        return "\(kept.userID ?? "nobody") \(EJSON.array(kept.subscriptions).text) \(documents)"
    }

    @Test func whatIsWrittenCanBeRead() throws {
        let bytes = try kept.bytes(server: Self.server)
        let read = try DDPKeptDocuments(parsing: bytes, server: Self.server)
        #expect(text(read) == text(kept))
        let empty = DDPKeptDocuments(userID: nil, subscriptions: [], collections: [])
        let again = try DDPKeptDocuments(parsing: empty.bytes(server: ""), server: "")
        #expect(text(again) == text(empty))
    }

    @Test func documentsOfOneCollectionShareTheirNames() throws {
        let documents = [try Self.document("a", ["n": 1]), try Self.document("b", ["n": 2])]
        let kept = DDPKeptDocuments(
            userID: nil, subscriptions: [],
            collections: [.init(name: "c", documents: documents)])
        let read = try DDPKeptDocuments(parsing: kept.bytes(server: ""), server: "")
        let names = read.collections[0].documents.map { $0.fields.storage?.names }
        #expect(names[0] === names[1])
    }

    @Test func eachDamageIsNoticed() throws {
        let bytes = try kept.bytes(server: Self.server)
        for position in bytes.indices {
            var damaged = bytes
            damaged[position] ^= 1
            #expect(throws: RealtimeError.self) {
                try DDPKeptDocuments(parsing: damaged, server: Self.server)
            }
        }
        for count in bytes.indices {
            #expect(throws: RealtimeError.self) {
                try DDPKeptDocuments(parsing: Array(bytes.prefix(count)), server: Self.server)
            }
        }
    }

    @Test func faultsAreNamed() throws {
        func fault(_ bytes: [UInt8], _ server: String = DDPKeptDocumentsTests.server) -> String {
            do throws(RealtimeError) {
                _ = try DDPKeptDocuments(parsing: bytes, server: server)
                return ""
            } catch {
                return error.message
            }
        }
        let bytes = try kept.bytes(server: Self.server)
        #expect(
            fault(bytes, "wss://other") == "has documents of another server, \"\(Self.server)\"")
        let other = Array(
            String(decoding: bytes, as: UTF8.self).replacingFirst("documents 1", "documents 2").utf8
        )
        #expect(fault(other) == "is of another version, or damaged")
        #expect(fault(bytes.dropLast()) == "is damaged: its checksum is wrong")
    }
}

extension String {
    fileprivate func replacingFirst(_ old: String, _ new: String) -> String {
        guard let range = firstRange(of: old) else { return self }
        return self[..<range.lowerBound] + new + self[range.upperBound...]
    }
}
