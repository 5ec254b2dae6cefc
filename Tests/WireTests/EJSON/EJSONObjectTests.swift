import Testing

@testable import Wire

struct EJSONObjectTests {
    @Test func copiesAreIndependent() {
        let original: EJSONObject = ["a": 1, "b": 2]
        var copy = original
        copy["a"] = 5
        #expect(original["a"] == 1)
        copy["c"] = 3
        copy["b"] = nil
        #expect(original == ["a": 1, "b": 2])
        #expect(copy == ["a": 5, "c": 3])
    }

    /// Compares with a plain list of pairs: with few fields, and so many that they are indexed.
    @Test(arguments: [4, 40]) func isAListOfFields(names: Int) {
        var random = SystemRandomNumberGenerator()
        var object = EJSONObject()
        var list: [(name: String, value: Double)] = []
        var snapshots: [(object: EJSONObject, list: [(name: String, value: Double)])] = []
        for step in 0..<2_000 {
            let name = "field \(Int.random(in: 0..<names, using: &random))"
            let place = list.firstIndex { $0.name == name }
            if Int.random(in: 0..<3, using: &random) == 0 {
                object[name] = nil
                if let place { list.remove(at: place) }
            } else {
                object[name] = .number(Double(step))
                if let place {
                    list[place].value = Double(step)
                } else {
                    list.append((name, Double(step)))
                }
            }
            if step % 100 == 0 { snapshots.append((object, list)) }
            #expect(object[name] == list.first { $0.name == name }.map { .number($0.value) })
        }
        for (object, list) in snapshots + [(object, list)] {
            #expect(object.count == list.count)
            #expect(object.fields.map { $0.name } == list.map { $0.name })
            #expect(object.fields.map { $0.value } == list.map { .number($0.value) })
        }
    }

    @Test func fieldsAreFoundAfterManyWereRemoved() {
        var object = EJSONObject()
        for field in 0..<40 { object["field \(field)"] = .number(Double(field)) }
        for field in 0..<35 { object["field \(field)"] = nil }
        object["new"] = 1
        object["new"] = 2
        #expect(object["new"] == 2)
        #expect(object["field 36"] == 36)
        #expect(object.fields.map { $0.name } == (35..<40).map { "field \($0)" } + ["new"])
    }

    @Test func objectsOfOneTextShareTheirNames() throws {
        let text = #"[{"a":1,"b":{"c":2}},{"a":3,"b":{"c":4}},{"b":3,"a":{}},{"a":3,"\u0062":4}]"#
        guard case .array(let objects) = try EJSON(parsing: text) else {
            Issue.record("not an array")
            return
        }
        let names = objects.map { $0.names }
        #expect(names[0] === names[1])
        #expect(names[0] !== names[2])
        #expect(names[3]?.texts == ["a", "b"])
        #expect(
            objects.map { $0.text }.joined(separator: ",") == #"{"a":1,"b":{"c":2}},"#
                + #"{"a":3,"b":{"c":4}},{"b":3,"a":{}},{"a":3,"b":4}"#)
    }

    @Test func changingOneObjectLeavesThoseWithTheSameNames() throws {
        guard case .array(let both) = try EJSON(parsing: #"[{"a":1},{"a":2}]"#),
            case .object(var first) = both[0], case .object(let second) = both[1]
        else {
            Issue.record("not objects")
            return
        }
        first["b"] = 3
        first["a"] = nil
        #expect(first == ["b": 3])
        #expect(second == ["a": 2])
    }

    @Test func ofMembersWithOneNameTheLastCounts() throws {
        #expect(try EJSON(parsing: #"{"a":1,"b":2,"a":3}"#) == ["a": 3, "b": 2])
        let many = (0..<40).map { #""f\#($0 % 30)":\#($0)"# }.joined(separator: ",")
        guard case .object(let object) = try EJSON(parsing: "{\(many)}") else {
            Issue.record("not an object")
            return
        }
        #expect(object.count == 30)
        #expect(object["f5"] == 35)
        #expect(object["f15"] == 15)
    }

    @Test func namesBecomeSharedAgain() {
        var first: EJSONObject = ["a": 1]
        var second: EJSONObject = ["a": 2]
        var third: EJSONObject = ["b": 2]
        var names = SharedFieldNames()
        for name in ["x", "y"] {
            first[name] = 5
            second[name] = 6
        }
        first.shareNames(with: &names)
        second.shareNames(with: &names)
        third.shareNames(with: &names)
        #expect(EJSON.object(first).names === EJSON.object(second).names)
        second["x"] = nil
        #expect(first == ["a": 1, "x": 5, "y": 5])
        #expect(second == ["a": 2, "y": 6])
        #expect(third == ["b": 2])
    }

    @Test func theEstimateOfMemoryIsASumOverFields() {
        var object = EJSONObject()
        var sum = 0
        for name in ["a", "bc", "_id"] {
            object[name] = .string("text")
            sum += EJSON.string("text").storedBytes(name: name)
        }
        #expect(object.storedBytes == sum)
        #expect(object.hasID)
        object["_id"] = nil
        #expect(!object.hasID)
    }
}

extension EJSON {
    /// The list of an object's names.
    fileprivate var names: FieldNames? {
        guard case .object(let object) = self else { return nil }
        return object.storage?.names
    }
}
