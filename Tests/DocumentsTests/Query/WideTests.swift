import Testing
import Wire

@testable import Documents

/// Many fields and many values, against plain models of the same operations.
struct WideTests {
    // MARK: Modifiers

    /// Objects by their fields alone, changed one after the other.
    private enum Model {
        private struct Refused: Error {}

        static func set(_ path: [String], _ new: EJSON, in fields: inout EJSONObject) throws {
            guard path.count > 1 else {
                fields[path[0]] = new
                return
            }
            var inner = EJSONObject()
            if let value = fields[path[0]] {
                guard case .object(let object) = value else { throw Refused() }
                inner = object
            }
            try set(Array(path[1...]), new, in: &inner)
            fields[path[0]] = .object(inner)
        }

        static func take(_ path: [String], from fields: inout EJSONObject) -> EJSON? {
            let value = fields[path[0]]
            guard path.count > 1 else {
                fields[path[0]] = nil
                return value
            }
            guard case .object(var inner) = value else { return nil }
            let taken = take(Array(path[1...]), from: &inner)
            fields[path[0]] = .object(inner)
            return taken
        }

        static func apply(_ modifier: EJSONObject, to fields: EJSONObject) throws -> EJSONObject {
            var changed = fields
            for step in modifier.fields {
                guard case .object(let operands) = step.value else { throw Refused() }
                for operand in operands.fields {
                    let path = operand.name.split(separator: ".").map { String($0) }
                    switch (step.name, operand.value) {
                    case ("$unset", _): _ = take(path, from: &changed)
                    case ("$rename", .string(let target)):
                        guard let value = take(path, from: &changed) else { continue }
                        let path = target.split(separator: ".").map { String($0) }
                        try set(path, value, in: &changed)
                    default: try set(path, operand.value, in: &changed)
                    }
                }
            }
            return changed
        }
    }

    private func path(_ numbers: inout SeededNumbers) -> String {
        let names = ["a", "b", "c", "d", "e", "f"]
        return (0..<Int.random(in: 1...3, using: &numbers)).map { _ in
            names[Int.random(in: 0..<names.count, using: &numbers)]
        }.joined(separator: ".")
    }

    /// - Parameter widening: more names, so that objects have indexes of their names.
    private func modifier(
        _ numbers: inout SeededNumbers, widening: Bool
    ) -> EJSONObject {
        var modifier = EJSONObject()
        for name in ["$rename", "$set", "$unset"].shuffled(using: &numbers) {
            var operands = EJSONObject()
            for number in 0..<Int.random(in: 1...(widening ? 60 : 6), using: &numbers) {
                let wide = widening ? "\(number % 40)" : ""
                let path = path(&numbers) + wide
                let target = self.path(&numbers) + wide
                switch name {
                case "$rename": if target != path { operands[path] = .string(target) }
                case "$set": operands[path] = .number(Double(number))
                default: operands[path] = 1
                }
            }
            modifier[name] = .object(operands)
        }
        return modifier
    }

    @Test(arguments: [false, true]) func modifiersDoWhatTheModelDoes(widening: Bool) throws {
        var numbers = SeededNumbers(seed: widening ? 11 : 12)
        var refused = 0
        for _ in 0..<(widening ? 40 : 600) {
            var fields = EJSONObject()
            for _ in 0..<4 {
                let modifier = modifier(&numbers, widening: widening)
                let expected = try? Model.apply(modifier, to: fields)
                let changed = try? Modifier(.object(modifier), now: 0)
                    .apply(to: fields, id: DocumentID("m"))
                // The order of the fields is part of the text.
                let text = changed.map { EJSON.object($0).text }
                #expect(text == expected.map { EJSON.object($0).text }, "\(modifier)")
                if expected == nil { refused += 1 }
                fields = changed ?? fields
            }
        }
        // Many names seldom lead below a value.
        #expect(widening || refused > 0)
    }

    @Test func valuesMoveAcrossListsAndObjects() throws {
        let fields = try document(#"{"l":[{"a":1,"b":2},5],"o":{"p":{"q":1}}}"#)
        let modifier = try value(
            #"{"$unset":{"l.0.a":1,"l.1":1},"$set":{"l.0.c":3,"l.3.d":4},"#
                + #""$rename":{"o.p":"x","o":"y"},"$push":{"l":6},"$inc":{"x.q":1}}"#)
        let changed = try Modifier(modifier, now: 0).apply(to: fields, id: DocumentID("m"))
        let expected = #"{"l":[{"b":2,"c":3},null,null,{"d":4},6],"x":{"q":2},"y":{}}"#
        #expect(EJSON.object(changed).text == expected)
    }

    /// With a quadratic algorithm this would take minutes.
    @Test func manyFieldsAreChangedAtOnce() throws {
        let names = (0..<20_000).map { "field\($0)" }
        let ones = EJSON.object(EJSONObject(names.map { ($0, .number(1)) }))
        let targets = EJSON.object(EJSONObject(names.map { ($0, .string("new" + $0)) }))
        func changed(_ modifier: EJSON, _ fields: EJSON) throws -> EJSONObject {
            guard case .object(let fields) = fields else { return EJSONObject() }
            return try Modifier(modifier, now: 0).apply(to: fields, id: DocumentID("m"))
        }
        #expect(try EJSON.object(changed(["$set": ones], [:])) == ones)
        #expect(try changed(["$unset": ones], ones).isEmpty)
        let renamed = try changed(["$rename": targets], ones)
        #expect(renamed.fields.map { $0.name } == names.map { "new" + $0 })
        let projection = try Projection(ones)
        #expect(projection.apply(renamed).isEmpty)
        guard case .object(let fields) = ones else { return }
        #expect(projection.apply(fields) == fields)
        let values = EJSON.array(names.map { .string($0) })
        let added = try changed(["$addToSet": ["l": ["$each": values]]], ["l": values])
        #expect(added["l"] == values)
        #expect(try changed(["$pullAll": ["l": values]], ["l": values])["l"] == .array([]))
    }

    // MARK: Sets

    /// Values that are nearly equal.
    private static let values: [EJSON] = [
        .null, .bool(true), .bool(false), .number(0), .number(-0.0), .number(1), .number(.nan),
        .number(.infinity), .string(""), .string("1"), .string("\u{E9}"), .string("e\u{301}"),
        .array([]), .array([.null]), .array([1, 2]), .array([[1], 2]), [:], ["a": 1], ["a": "1"],
        ["a": 1, "b": 2], ["b": 2, "a": 1], .date(1), .date(0), .bytes([]), .bytes([1]),
        .pattern(EJSONPattern(source: "1", flags: "")), .decimal("2"), .decimal("3"),
        .pattern(EJSONPattern(source: "1", flags: "i")),
        .custom(EJSONCustom(type: "t", value: 1)), .custom(EJSONCustom(type: "t", value: 2)),
        .custom(EJSONCustom(type: "u", value: 1)),
    ]

    @Test func setsContainWhatWasInserted() {
        var numbers = SeededNumbers(seed: 3)
        for _ in 0..<500 {
            let count = Int.random(in: 0...20, using: &numbers)
            let inserted = (0..<count).map { _ in
                WideTests.values[Int.random(in: 0..<WideTests.values.count, using: &numbers)]
            }
            let set = EJSONSet(inserted)
            for value in WideTests.values {
                let isMember = inserted.contains { $0.equals(value, keyOrder: true) }
                #expect(set.contains(value) == isMember, "\(value) in \(inserted)")
            }
        }
    }

    // MARK: Selectors

    /// `$or` and `$nor` of many conditions on few paths, against each condition alone.
    @Test func conditionsOnOnePathAreMerged() throws {
        var numbers = SeededNumbers(seed: 5)
        let paths = ["v", "v.k", "_id", "w"]
        func condition() -> EJSON {
            let value = WideTests.values[Int.random(in: 0..<20, using: &numbers)]
            switch Int.random(in: 0..<6, using: &numbers) {
            case 0: return ["$in": [value, "a", 2]]
            case 1: return ["$gt": 1]
            case 2: return .pattern(EJSONPattern(source: "[a-c]", flags: ""))
            case 3: return ["$ne": value]
            default: return value
            }
        }
        let documents = try found(kinds)
        for _ in 0..<300 {
            let parts = (0..<Int.random(in: 1...12, using: &numbers)).map { _ in
                EJSON.object([paths[Int.random(in: 0..<4, using: &numbers)]: condition()])
            }
            // A condition that is an id that is null matches nothing by itself.
            let alone = try parts.map { try Selector(["$and": [$0]]) }
            let any = try Selector(["$or": .array(parts)])
            let none = try Selector(["$nor": .array(parts)])
            for document in documents {
                let matches = alone.contains { $0.matches(document.fields, id: document.id) }
                let isAny = any.matches(document.fields, id: document.id)
                let isNone = none.matches(document.fields, id: document.id)
                #expect(isAny == matches && isNone != matches, "\(parts)")
            }
        }
    }

    /// `$all` with many values, against each value alone.
    @Test func allValuesAreRequired() throws {
        var numbers = SeededNumbers(seed: 7)
        let lists = (0..<40).map { _ in
            EJSON.array(WideTests.values.filter { _ in Int.random(in: 0..<8, using: &numbers) > 0 })
        }
        let whole = EJSON.array(WideTests.values)
        // A list itself, in lists, at a place that the path names, and below objects.
        let documents: [EJSONObject] =
            [["v": whole], ["v": [whole]], ["v": 1], [:], ["v": .null]]
            + lists.map { ["v": $0] } + lists.map { ["v": [["k": $0], ["k": whole]]] }
        let required = lists + [.array(Array(repeating: 1, count: 9))]
        let id = DocumentID("a")
        var count = 0
        for case .array(let values) in required where values.count > 8 {
            for path in ["v", "v.k", "v.0", "v.k.1"] {
                func selector(_ values: [EJSON]) throws -> Selector {
                    try Selector([path: ["$all": .array(values)]])
                }
                let all = try selector(values)
                let each = try values.map { try selector([$0]) }
                let element = try Selector(["v": ["$elemMatch": ["$all": .array(values)]]])
                for document in documents {
                    let isMatch = all.matches(document, id: id)
                    #expect(isMatch == each.allSatisfy { $0.matches(document, id: id) })
                    if isMatch { count += 1 }
                    guard case .array(let elements) = document["v"] else { continue }
                    let isElement = elements.contains { element in
                        values.allSatisfy { element.equals($0, keyOrder: true) }
                    }
                    #expect(element.matches(document, id: id) == isElement)
                }
            }
        }
        #expect(count > 100)
    }

    @Test(.timeLimit(.minutes(5))) func manyValuesAreRequired() throws {
        let values = EJSON.array((0..<100_000).map { .number(Double($0)) })
        let selector = try Selector(["v": ["$all": values]])
        let last = EJSON.array((1..<100_001).map { .number(Double($0)) })
        #expect(selector.matches(["v": values], id: DocumentID("a")))
        #expect(!selector.matches(["v": last], id: DocumentID("a")))
    }

    @Test func manyIDsAreFound() throws {
        let ids = (0..<20_000).map { EJSON.string("id\($0)") }
        let documents = ids.compactMap { id in DocumentID(id).map { ($0, EJSONObject()) } }
        let selectors: [(EJSON, Int)] = [
            (["$or": .array(ids.map { ["_id": $0] })], 20_000),
            (["$nor": .array(ids.map { ["_id": $0] })], 0),
            (["_id": ["$in": .array(ids)]], 20_000), (["_id": ["$nin": .array(ids)]], 0),
        ]
        for (selector, count) in selectors {
            #expect(try Query(selector: selector).results(of: documents).count == count)
        }
    }
}
