import Foundation
import Realtime
import RealtimeFoundation
import Testing

private enum Color: String, Codable { case red, green }

private struct Point: Codable, Equatable {
    var x = 0
    var y = 0.5
}

private struct Everything: Codable, Equatable {
    var text = "é"
    var flag = true
    var whole = -7
    var byte: UInt8 = 255
    var real = 2.5
    var infinite = Double.infinity
    var small: Float = 0.25
    var color = Color.green
    var point = Point()
    var points = [Point(x: 1), Point(x: 2)]
    var names = ["a": 1, "b": 2]
    var nothing: String?
    var something: Int? = 3
    var date = EJSONDate(milliseconds: -5)
    var bytes: [UInt8] = [0, 255]
    var id = ObjectID(hex: "0123456789abcdef01234567")
    var any = EJSON.array([.null, .bool(true)])
    var object: EJSONObject = ["k": 1]
    var pattern = EJSONPattern(source: "^a", flags: "i")
    var custom = EJSONCustom(type: "Distance", value: 5)
    var price = EJSONDecimal("12.50")
    var nested: [[Int?]] = [[1, nil], []]
}

@Suite struct EJSONCoderTests {
    @Test func everythingSurvives() throws {
        let value = Everything()
        let encoded = try EJSONEncoder().encode(value)
        #expect(
            encoded.text == #"{"text":"é","flag":true,"whole":-7,"byte":255,"real":2.5,"#
                + #""infinite":{"$InfNaN":1},"small":0.25,"color":"green","point":{"x":0,"y":0.5},"#
                + #""points":[{"x":1,"y":0.5},{"x":2,"y":0.5}],"names":"#
                + (encoded.text.contains(#"{"a":1,"b":2}"#)
                    ? #"{"a":1,"b":2},"# : #"{"b":2,"a":1},"#)
                + #""something":3,"date":{"$date":-5},"bytes":{"$binary":"AP8="},"#
                + #""id":{"$type":"oid","$value":"0123456789abcdef01234567"},"any":[null,true],"#
                + #""object":{"k":1},"pattern":{"$regexp":"^a","$flags":"i"},"#
                + #""custom":{"$type":"Distance","$value":5},"#
                + #""price":{"$type":"Decimal","$value":"12.50"},"nested":[[1,null],[]]}"#)
        let read = try EJSONDecoder().decode(Everything.self, from: EJSON(parsing: encoded.text))
        #expect(read == value)
    }

    @Test func valuesThatAreNotObjects() throws {
        #expect(try EJSONEncoder().encode(5) == 5)
        #expect(try EJSONEncoder().encode([1, 2]) == [1, 2])
        #expect(try EJSONEncoder().encode(String?.none) == .null)
        #expect(try EJSONEncoder().encode(EJSONDate(milliseconds: 1)) == .date(1))
        #expect(try EJSONEncoder().encode([String]()) == [])
        #expect(try EJSONEncoder().encode([String: Int]()) == [:])
        #expect(try EJSONDecoder().decode(Int?.self, from: .null) == nil)
        #expect(try EJSONDecoder().decode(EJSON.self, from: .null) == .null)
        #expect(try EJSONDecoder().decode([EJSON].self, from: [.null, 1]) == [.null, 1])
        #expect(try EJSONDecoder().decode(Double.self, from: .number(.nan)).isNaN)
    }

    @Test(arguments: [
        (#"{"x":"1"}"#, "typeMismatch x", "a string is not Int"),
        (#"{"x":1.5}"#, "dataCorrupted x", "1.5 does not fit into Int"),
        (#"{"x":1e300}"#, "dataCorrupted x", "1e+300 does not fit into Int"),
        (#"{"x":null}"#, "valueNotFound x", "null is not Int"),
        (#"{"x":{"$date":1}}"#, "typeMismatch x", "a date is not Int"),
        (#"{}"#, "keyNotFound x", "x is missing"),
        (#"[]"#, "typeMismatch ", "an array is not Dictionary<String, EJSON>"),
    ]) func faultsOfAPoint(_ text: String, _ kind: String, _ reason: String) throws {
        let error = #expect(throws: DecodingError.self) {
            try EJSONDecoder().decode(Point.self, from: EJSON(parsing: text))
        }
        #expect(error.map { described($0) } ?? "" == "\(kind): \(reason)")
    }

    @Test func thePathLeadsToTheFault() throws {
        struct Outer: Codable { var lists: [String: [Point]] }
        let error = #expect(throws: DecodingError.self) {
            try EJSONDecoder().decode(
                Outer.self, from: ["lists": ["a": [["x": 1, "y": 1], ["x": 1, "y": true]]]])
        }
        #expect(error.map { described($0) } == "typeMismatch lists.a.1.y: a bool is not Double")
    }

    @Test func numbersHaveTheRangeOfTheirType() throws {
        let decoder = EJSONDecoder()
        #expect(try decoder.decode(UInt8.self, from: 255) == 255)
        #expect(throws: DecodingError.self) { try decoder.decode(UInt8.self, from: 256) }
        #expect(throws: DecodingError.self) { try decoder.decode(UInt.self, from: -1) }
        #expect(throws: DecodingError.self) { try decoder.decode(Float.self, from: 1e300) }
        #expect(try decoder.decode(Float.self, from: .number(.infinity)) == .infinity)
        #expect(try decoder.decode(Int.self, from: .number(-0.0)) == 0)
        #expect(try EJSONEncoder().encode(1 << 53) == .number(0x1p53))
        #expect(throws: EncodingError.self) { try EJSONEncoder().encode((1 << 53) + 1) }
        #expect(throws: EncodingError.self) { try EJSONEncoder().encode([UInt64.max]) }
        #expect(throws: EncodingError.self) { try EJSONEncoder().encode(["a": 1 << 54]) }
    }

    @Test func bytesAreNotAnArray() throws {
        #expect(throws: DecodingError.self) {
            try EJSONDecoder().decode([UInt8].self, from: [1, 2])
        }
        #expect(throws: DecodingError.self) {
            try EJSONDecoder().decode([Int].self, from: .bytes([1]))
        }
    }

    @Test func classesEncodeTheirSuperclass() throws {
        class Base: Codable { var base = 1 }
        final class Derived: Base {
            var own = 2
            override init() { super.init() }
            private enum Keys: CodingKey { case own, list }
            required init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: Keys.self)
                var list = try container.nestedUnkeyedContainer(forKey: .list)
                own = try list.decode(Int.self)
                #expect(list.isAtEnd && list.count == 1)
                try super.init(from: container.superDecoder())
            }
            override func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: Keys.self)
                var list = container.nestedUnkeyedContainer(forKey: .list)
                try list.encode(own)
                try super.encode(to: container.superEncoder())
            }
        }
        let encoded = try EJSONEncoder().encode(Derived())
        #expect(encoded == ["list": [2], "super": ["base": 1]])
        let read = try EJSONDecoder().decode(Derived.self, from: encoded)
        #expect(read.own == 2 && read.base == 1)
    }

    @Test func foundationTypes() throws {
        struct Mail: Codable, Equatable {
            var at = Date(timeIntervalSince1970: 1.25)
            var body = Data([1, 2])
            var price = Decimal(string: "-12.5")
            var link = URL(string: "https://example.org/a?b=c")
        }
        let encoded = try EJSONEncoder().encode(Mail())
        #expect(
            encoded == [
                "at": .date(1250), "body": .bytes([1, 2]), "price": .decimal("-12.5"),
                "link": "https://example.org/a?b=c",
            ])
        #expect(try EJSONDecoder().decode(Mail.self, from: encoded) == Mail())
        #expect(EJSONDate(Date(timeIntervalSince1970: -0.0015)).milliseconds == -2)
        #expect(Date(EJSONDate(milliseconds: 500)).timeIntervalSince1970 == 0.5)
        #expect(EJSONDate(Date(timeIntervalSince1970: .infinity)).milliseconds == .max)
    }

    @Test(
        arguments: [
            (EJSON.decimal("1E+3"), Decimal(1000)), (.decimal("0.1"), Decimal(string: "0.1")),
            (.decimal("NaN"), .nan), (.number(0.1), Decimal(string: "0.1")), (.number(-3), -3),
            (.decimal("Infinity"), nil), (.decimal("1.5x"), nil), (.decimal(""), nil),
            (.number(.infinity), nil), (.string("1"), nil),
        ] as [(EJSON, Decimal?)]) func decimals(_ value: EJSON, _ expected: Decimal?) throws
    {
        guard let expected else {
            #expect(throws: DecodingError.self) {
                try EJSONDecoder().decode(Decimal.self, from: value)
            }
            return
        }
        let decoded = try EJSONDecoder().decode(Decimal.self, from: value)
        #expect(decoded == expected || decoded.isNaN && expected.isNaN)
        let again = try EJSONDecoder().decode(Decimal.self, from: EJSONEncoder().encode(decoded))
        #expect(again.description == decoded.description)
    }

    @Test func typesOfTheApplication() throws {
        struct Money: EJSONType, Codable, Equatable {
            static let ejsonName = "Money"
            var cents: Int
            var ejsonValue: EJSON { .number(Double(cents)) }

            init(cents: Int) { self.cents = cents }

            init(ejsonValue: EJSON) throws {
                cents = try EJSONDecoder().decode(Int.self, from: ejsonValue)
            }
        }
        struct Bill: Codable, Equatable {
            var total = Money(cents: 250)
            var parts: [Money?] = [Money(cents: 50), nil]
        }
        let encoded = try EJSONEncoder().encode(Bill())
        let half = EJSON.custom(EJSONCustom(type: "Money", value: 50))
        #expect(
            encoded == [
                "total": .custom(EJSONCustom(type: "Money", value: 250)), "parts": [half, .null],
            ])
        #expect(try EJSONDecoder().decode(Bill.self, from: encoded) == Bill())
        let other = #expect(throws: DecodingError.self) {
            try EJSONDecoder().decode(
                [Money].self, from: [.custom(EJSONCustom(type: "x", value: 1))])
        }
        #expect(other.map { described($0) } == "typeMismatch 0: a value of type x is not Money")
        let broken = #expect(throws: DecodingError.self) {
            try EJSONDecoder().decode(
                [Money].self, from: [.custom(EJSONCustom(type: "Money", value: "many"))])
        }
        #expect(broken.map { described($0) } == "dataCorrupted 0: it cannot be Money")
    }

    @Test func missingNullAndUnknownFields() throws {
        struct Note: Codable, Equatable {
            var text: String?
            var count: Int?
        }
        let decoder = EJSONDecoder()
        #expect(try decoder.decode(Note.self, from: ["text": .null, "other": 1]) == Note())
        #expect(try decoder.decode(Note.self, from: ["count": 2]) == Note(count: 2))
        #expect(try EJSONEncoder().encode(Note(text: "a")) == ["text": "a"])
        #expect(throws: DecodingError.self) { try decoder.decode(Note.self, from: .null) }
        #expect(throws: DecodingError.self) { try decoder.decode(Note.self, from: ["count": "2"]) }
    }

    /// A value of any depth.
    private struct Nest: Codable {
        var depth: Int
        enum Keys: CodingKey { case inner }

        init(depth: Int) { self.depth = depth }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Keys.self)
            let inner = try container.decodeIfPresent(Nest.self, forKey: .inner)
            depth = inner.map { $0.depth + 1 } ?? 0
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            if depth > 0 { try container.encode(Nest(depth: depth - 1), forKey: .inner) }
        }
    }

    @Test func theDepthIsLimited() throws {
        let deepest = try EJSONEncoder().encode(Nest(depth: 127))
        #expect(try EJSONDecoder().decode(Nest.self, from: deepest).depth == 127)
        for depth in [128, 129, 1_000_000] {
            let error = #expect(throws: EncodingError.self) {
                try EJSONEncoder().encode(Nest(depth: depth))
            }
            #expect(error.map { "\($0)" }?.contains("nested deeper than 128 levels") ?? false)
        }
        var deep = EJSON.object([:])
        for _ in 0..<10_000 { deep = ["inner": deep] }
        let error = #expect(throws: DecodingError.self) {
            try EJSONDecoder().decode(Nest.self, from: deep)
        }
        #expect(error.map { "\($0)" }?.contains("nested deeper than 128 levels") ?? false)
    }

    @Test func containersInContainers() throws {
        struct Table: Codable, Equatable {
            var rows = [[1, 2], [3]]
            enum Keys: String, CodingKey {
                case rows, head
                case size = "n"
            }

            init() {}

            init(from decoder: any Decoder) throws {
                let table = try decoder.container(keyedBy: Keys.self)
                #expect(table.allKeys.count == 3 && table.contains(.head))
                let head = try table.nestedContainer(keyedBy: Keys.self, forKey: .head)
                let size = try head.decode(Int.self, forKey: .size)
                var list = try table.nestedUnkeyedContainer(forKey: .rows)
                rows = []
                while !list.isAtEnd {
                    var row = try list.nestedUnkeyedContainer()
                    var numbers: [Int] = []
                    while !row.isAtEnd { numbers.append(try row.decode(Int.self)) }
                    #expect(throws: DecodingError.self) { try row.decode(Int.self) }
                    rows.append(numbers)
                }
                #expect(rows.count == size && decoder.userInfo.count == 1)
            }

            func encode(to encoder: any Encoder) throws {
                var table = encoder.container(keyedBy: Keys.self)
                var list = table.nestedUnkeyedContainer(forKey: .rows)
                for row in rows {
                    var numbers = list.nestedUnkeyedContainer()
                    for number in row { try numbers.encode(number) }
                }
                var head = table.nestedContainer(keyedBy: Keys.self, forKey: .head)
                try head.encode(rows.count, forKey: .size)
                try table.encodeNil(forKey: .size)
                #expect(encoder.userInfo.count == 1)
            }
        }
        let key = try #require(CodingUserInfoKey(rawValue: "key"))
        var (encoder, decoder) = (EJSONEncoder(), EJSONDecoder())
        encoder.userInfo[key] = true
        decoder.userInfo[key] = true
        let encoded = try encoder.encode(Table())
        #expect(encoded == ["rows": [[1, 2], [3]], "head": ["n": 2], "n": .null])
        #expect(try decoder.decode(Table.self, from: encoded) == Table())
    }

    @Test func containersInAnArray() throws {
        struct Mixed: Codable {
            var (number, name, nothing, rest) = (1, "a", true, [2, 3])
            enum Keys: CodingKey { case name, more }

            init() {}

            init(from decoder: any Decoder) throws {
                var list = try decoder.unkeyedContainer()
                number = try Int(from: list.superDecoder())
                name = try list.nestedContainer(keyedBy: Keys.self).decode(
                    String.self, forKey: .name)
                nothing = try list.decodeNil()
                #expect(try !list.decodeNil() && list.currentIndex == 3)
                rest = try list.decode([Int].self)
                #expect(list.isAtEnd && list.count == 4)
                #expect(throws: DecodingError.self) { try list.decodeNil() }
                #expect(throws: DecodingError.self) { try list.superDecoder() }
            }

            func encode(to encoder: any Encoder) throws {
                var list = encoder.unkeyedContainer()
                try number.encode(to: list.superEncoder())
                var object = list.nestedContainer(keyedBy: Keys.self)
                try object.encode("", forKey: .name)
                try object.encode(name, forKey: .name)
                try list.encodeNil()
                try list.encode(rest)
                #expect(list.count == 4)
            }
        }
        // Of two values for a key, the last one counts.
        let encoded = try EJSONEncoder().encode(Mixed())
        #expect(encoded == [1, ["name": "a"], .null, [2, 3]])
        let read = try EJSONDecoder().decode(Mixed.self, from: encoded)
        #expect(read.number == 1 && read.name == "a" && read.nothing && read.rest == [2, 3])
    }

    @Test func aNestedContainerMayBeFilledInParts() throws {
        struct Flat: Encodable {
            enum Keys: CodingKey { case outer, a, b }

            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: Keys.self)
                var first = container.nestedContainer(keyedBy: Keys.self, forKey: .outer)
                try first.encode(1, forKey: .a)
                var second = container.nestedContainer(keyedBy: Keys.self, forKey: .outer)
                try second.encode(2, forKey: .b)
            }
        }
        #expect(try EJSONEncoder().encode(Flat()) == ["outer": ["a": 1, "b": 2]])
    }

    /// With coders of other formats, special values are texts.
    @Test func otherCoders() throws {
        struct Note: Codable, Equatable {
            var at = EJSONDate(milliseconds: 5)
            var any: EJSON = ["a": .null]
        }
        let json = try JSONEncoder().encode(Note())
        #expect(try JSONDecoder().decode(Note.self, from: json) == Note())
        #expect(String(decoding: json, as: UTF8.self).contains(#"{\"$date\":5}"#))
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(Note.self, from: Data(#"{"at":"5","any":"1"}"#.utf8))
        }
    }

    @Test func datesAreCounted() {
        let date = EJSONDate(milliseconds: 1_000)
        #expect(date + .milliseconds(1500) == EJSONDate(milliseconds: 2_500))
        #expect(date - .seconds(2) == EJSONDate(milliseconds: -1_000))
        #expect(date - EJSONDate(milliseconds: 400) == .milliseconds(600))
        #expect(EJSONDate(milliseconds: .max) + .seconds(1) == EJSONDate(milliseconds: .max))
        #expect(date < date + .milliseconds(1) && EJSONDate.now > date)
    }
}

/// The kind, the path and the reason.
private func described(_ error: DecodingError) -> String {
    func line(_ kind: String, _ context: DecodingError.Context, _ key: (any CodingKey)? = nil)
        -> String
    {
        let path = (context.codingPath + [key].compactMap(\.self)).map(\.stringValue)
        return "\(kind) \(path.joined(separator: ".")): \(context.debugDescription)"
    }
    return switch error {
    case .typeMismatch(_, let context): line("typeMismatch", context)
    case .valueNotFound(_, let context): line("valueNotFound", context)
    case .keyNotFound(let key, let context): line("keyNotFound", context, key)
    case .dataCorrupted(let context): line("dataCorrupted", context)
    @unknown default: "\(error)"
    }
}
