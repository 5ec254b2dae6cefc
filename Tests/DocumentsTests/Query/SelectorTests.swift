import Testing
import Wire

@testable import Documents

struct SelectorTests {
    /// The vectors of Meteor's own code (M17).
    @Test(
        arguments: [
            (#"{"v":null}"#, "cd"), (#"{"v":{"$exists":false}}"#, "d"), (#"{"v":{"$gt":2}}"#, "ej"),
            (#"{"v":3}"#, "e"), (#"{"v":{"$in":[1,"x",null]}}"#, "abcd"),
            (#"{"v":{"$size":2}}"#, "ep"), (#"{"v.k":1}"#, "hp"), (#"{"v.0":3}"#, "e"),
            (#"{"v.0.k":1}"#, "p"), (#"{"v":{"$elemMatch":{"$gt":5}}}"#, "e"),
            (#"{"v":{"$elemMatch":{"k":2}}}"#, "p"), (#"{"v":{"$lte":null}}"#, "cd"),
            (#"{"v":{"$regex":"^x","$options":"i"}}"#, "bn"), (#"{"v":{"$gte":"a"}}"#, "b"),
            (#"{"v":{"k":1}}"#, "hp"), (#"{"v":{"$all":[3,7]}}"#, "e"),
            (#"{"v":{"$mod":[2,1]}}"#, "ae"), (#"{"v":[]}"#, "i"), (#"{"v":{"$type":2}}"#, "bn"),
            (#"{"v":{"$lt":{"$date":6}}}"#, "g"), (#"{"v":0}"#, "m"),
        ])
    func meteorsVectors(selector: String, ids: String) throws {
        #expect(try find(selector) == ids)
    }

    @Test(
        arguments: [
            (#"{"v":{"$eq":[3,7]}}"#, "e"), (#"{"v":{"$ne":null}}"#, "abefghijkmnop"),
            (#"{"v":{"$gte":2.5}}"#, "ej"), (#"{"v":{"$lt":1}}"#, "m"),
            (#"{"v":{"$lte":1}}"#, "am"),
            (#"{"v":{"$gt":false}}"#, "f"), (#"{"v":{"$gt":[1]}}"#, ""),
            (#"{"v":{"$nin":[1,"x",null]}}"#, "efghijkmnop"), (#"{"v":{"$in":[]}}"#, ""),
            (#"{"v":{"$in":[{"$regexp":"X","$flags":"i"}]}}"#, "bn"),
            (#"{"v":{"$exists":1}}"#, "abcefghijkmnop"), (#"{"v":{"$exists":0}}"#, "d"),
            (#"{"v":{"$type":"array"}}"#, ""), (#"{"v":{"$type":"number"}}"#, "error"),
            (#"{"v":{"$type":"bool"}}"#, "fo"), (#"{"v":{"$type":10}}"#, "c"),
            (#"{"v":{"$size":"2"}}"#, "i"), (#"{"v":{"$all":[]}}"#, ""),
            (#"{"v":{"$all":[{"$regexp":"x","$flags":""}]}}"#, "b"),
            (#"{"v":{"$not":{"$gt":2}}}"#, "abcdfghikmnop"),
            (#"{"v":{"$not":{"$regexp":"x","$flags":"i"}}}"#, "acdefghijkmop"),
            (#"{"v":{"$regexp":"x","$flags":""}}"#, "b"), (#"{"v":{"$mod":[0,0]}}"#, ""),
            (#"{"v":{"$gt":1,"$lt":4}}"#, "ej"), (#"{"$comment":"all","v":1}"#, "a"),
            (#"{"$and":[{"v":{"$gt":1}},{"v":{"$lt":3}}]}"#, "j"),
            (#"{"$or":[{"v":1},{"v":true}]}"#, "af"),
            (#"{"$nor":[{"v":{"$exists":true}},{"_id":"d"}]}"#, ""), ("{}", "abcdefghijkmnop"),
            (#"{"v":{"$elemMatch":{"$or":[{"k":2},{"k":3}]}}}"#, "p"),
            (#"{"_id":{"$gt":"n"}}"#, "op"),
        ])
    func operators(selector: String, ids: String) throws {
        if ids == "error" {
            #expect(isInvalid { _ = try find(selector) }, "\(selector)")
        } else {
            #expect(try find(selector) == ids, "\(selector)")
        }
    }

    @Test(
        arguments: [
            #"{"v":{"$foo":1}}"#, #"{"$foo":1}"#, #"{"$where":"true"}"#, #"{"v":{"$in":5}}"#,
            #"{"v":{"$nin":"x"}}"#, #"{"$and":[]}"#, #"{"$or":{"a":1}}"#, #"{"$nor":[5]}"#,
            #"{"v":{"$gt":1,"b":2}}"#, #"{"v":{"$options":"i"}}"#, #"{"v":{"$mod":[2]}}"#,
            #"{"v":{"$size":null}}"#, #"{"v":{"$elemMatch":5}}"#, #"{"v":{"$all":3}}"#,
            #"{"v":{"$all":[{"$gt":1}]}}"#, #"{"v":{"$in":[{"$gt":1}]}}"#, #"{"v":{"$type":0}}"#,
            #"{"v":{"$type":20}}"#, #"{"v":{"$type":null}}"#, #"{"v":{"$regex":5}}"#,
            #"{"v":{"$regex":"a","$options":"x"}}"#, #"{"v":{"$regex":"a","$options":"ii"}}"#,
            #"{"v":{"$regex":"("}}"#, "[]", "true", #"{"$date":5}"#, #"{"$binary":""}"#,
            #"{"v":{"$eq":{"$gt":1}}}"#, #"{"v":{"$ne":{"$gt":1}}}"#,
            #"{"v":{"$not":{"$foo":1}}}"#, #"{"$or":[{"v":{"$bar":1}}]}"#,
            #"{"v":{"$near":[1,1]}}"#, #"{"v":{"$elemMatch":{"$gt":1,"k":2}}}"#,
        ])
    func invalidOnesAreRefused(selector: String) {
        #expect(isInvalid { _ = try Selector(value(selector)) }, "\(selector)")
    }

    @Test(arguments: ["null", "false", #"{"_id":null}"#, #"{"_id":"","v":{"$foo":1}}"#])
    func emptyOnesMatchNothing(selector: String) throws {
        let selector = try Selector(value(selector))
        #expect(selector.ids == [])
        #expect(try !found(kinds).contains { selector.matches($0.fields, id: $0.id) })
    }

    @Test(
        arguments: [
            (#""a""#, #"["a"]"#), (#"{"_id":"a"}"#, #"["a"]"#),
            (#"{"_id":{"$in":["a","b"]},"v":1}"#, #"["a","b"]"#),
            (#"{"$and":[{"v":1},{"_id":"c"}]}"#, #"["c"]"#), (#"{"v":1}"#, "null"),
            (#"{"_id":{"$in":["a",null]}}"#, "null"), (#"{"_id":{"$in":[]}}"#, "null"),
            (#"{"$or":[{"_id":"a"}]}"#, "null"), (#"{"_id":{"$gt":"a"}}"#, "null"),
        ])
    func idsAreKnown(selector: String, ids: String) throws {
        let known = try Selector(value(selector)).ids
        let expected = try value(ids)
        #expect(known.map { .array($0.compactMap { $0.value }) } ?? .null == expected)
    }

    @Test func objectIDsAndNumbersAreIDs() throws {
        let documents = """
            [{"_id":{"$type":"oid","$value":"0123456789abcdef01234567"}},{"_id":5},
            {"_id":"0123456789abcdef01234567"}]
            """
        let id = #"{"$type":"oid","$value":"0123456789abcdef01234567"}"#
        #expect(try find(id, in: documents) == "0123456789abcdef01234567")
        #expect(try find("{\"_id\":\(id)}", in: documents) == "0123456789abcdef01234567")
        #expect(try find("5", in: documents) == "~5")
        #expect(
            try find(#""0123456789abcdef01234567""#, in: documents) == "-0123456789abcdef01234567")
    }

    /// How paths pass through lists: beside the ways in conformance/minimongo.
    @Test(
        arguments: [
            (#"{"a.0":5}"#, #"{"a":[5]}"#, true), (#"{"a.0":5}"#, #"{"a":[[5]]}"#, false),
            (#"{"a.0":[5]}"#, #"{"a":[[5]]}"#, true), (#"{"a.01":5}"#, #"{"a":[4,5]}"#, false),
            (#"{"a.01":null}"#, #"{"a":[4,5]}"#, true), (#"{"a.2":null}"#, #"{"a":[4,5]}"#, false),
            (#"{"a.0.b":null}"#, #"{"a":[5]}"#, false), (#"{"a.b":null}"#, #"{"a":5}"#, true),
            (#"{"a.b":null}"#, #"{"a":[5]}"#, false), (#"{"a.b":5}"#, #"{"a":[[{"b":5}]]}"#, false),
            (#"{"a.0.b":5}"#, #"{"a":[[{"b":5}]]}"#, true),
            (#"{"a.0":5}"#, #"{"a":{"0":5}}"#, true),
            (#"{"a.0":5}"#, #"{"a":[{"0":5}]}"#, true), (#"{"":5}"#, #"{"":5}"#, true),
            (#"{"a.99999999999999999999":5}"#, #"{"a":[5]}"#, false),
            (#"{"a":{"$elemMatch":{"0":5}}}"#, #"{"a":[1,[5]]}"#, true),
            (#"{"a":{"$elemMatch":{"$gt":3}}}"#, #"{"a":[[5]]}"#, false),
            (#"{"a":{"b":1,"c":2}}"#, #"{"a":{"c":2,"b":1}}"#, false),
        ])
    func paths(selector: String, fields: String, matches: Bool) throws {
        guard case .object(let fields) = try value(fields) else { return }
        let id = try #require(DocumentID(.string("x")))
        #expect(try Selector(value(selector)).matches(fields, id: id) == matches, "\(selector)")
    }

    @Test func numbersAreComparedAsNumbers() throws {
        let id = try #require(DocumentID(.string("x")))
        var fields = EJSONObject()
        fields["n"] = .number(.nan)
        for name in ["$gt", "$gte", "$lt", "$lte"] {
            let selector = try Selector(value("{\"n\":{\"\(name)\":0}}"))
            #expect(!selector.matches(fields, id: id))
        }
        #expect(try Selector(value(#"{"n":{"$InfNaN":0}}"#)).matches(fields, id: id))
        fields["n"] = .decimal("2.50")
        #expect(try Selector(value(#"{"n":{"$gt":2.4,"$lt":2.6}}"#)).matches(fields, id: id))
        fields["n"] = .number(-0.0)
        #expect(try Selector(value(#"{"n":0}"#)).matches(fields, id: id))
    }

    // MARK: Limits

    private func nested(_ levels: Int, _ name: String) -> EJSON {
        var selector: EJSON = .object(EJSONObject())
        for _ in 0..<levels {
            var outer = EJSONObject()
            outer[name] = .array([selector])
            selector = .object(outer)
        }
        return selector
    }

    @Test(arguments: ["$and", "$or", "$nor"])
    func depthIsLimited(name: String) {
        #expect(!isInvalid { _ = try Selector(nested(Selector.maximumDepth, name)) })
        #expect(isInvalid { _ = try Selector(nested(Selector.maximumDepth + 1, name)) })
    }

    @Test(arguments: ["$not", "$elemMatch"])
    func depthOfOperatorsIsLimited(name: String) {
        func selector(_ levels: Int) -> EJSON {
            var inner = EJSONObject()
            inner["$gt"] = .number(1)
            for _ in 0..<levels {
                var outer = EJSONObject()
                outer[name] = .object(inner)
                inner = outer
            }
            var selector = EJSONObject()
            selector["v"] = .object(inner)
            return .object(selector)
        }
        #expect(!isInvalid { _ = try Selector(selector(Selector.maximumDepth)) })
        #expect(isInvalid { _ = try Selector(selector(Selector.maximumDepth + 1)) })
    }

    @Test func pathsAreLimited() {
        func selector(_ part: String, _ count: Int) -> String {
            "{\"\([String](repeating: part, count: count).joined(separator: "."))\":1}"
        }
        for (part, limit) in [("a", FieldPath.maximumParts), ("0", FieldPath.maximumIndexes)] {
            #expect(!isInvalid { _ = try Selector(value(selector(part, limit))) })
            #expect(isInvalid { _ = try Selector(value(selector(part, limit + 1))) })
        }
    }

    /// In a list of objects with numeric fields, each index can be taken in two ways.
    @Test func ambiguousPathsEnd() throws {
        var deep: EJSON = .number(1)
        for _ in 0..<FieldPath.maximumIndexes {
            var inner = EJSONObject()
            inner["0"] = deep
            deep = .array([.object(inner)])
        }
        var fields = EJSONObject()
        fields["a"] = deep
        let path = "a" + String(repeating: ".0", count: FieldPath.maximumIndexes)
        let id = try #require(DocumentID(.string("x")))
        #expect(try Selector(value("{\"\(path)\":1}")).matches(fields, id: id))
        #expect(try !Selector(value("{\"\(path)\":2}")).matches(fields, id: id))
    }
}
