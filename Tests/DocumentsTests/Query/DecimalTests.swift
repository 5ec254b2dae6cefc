import Testing
import Wire

@testable import Documents

/// Decimals are compared by their values, in queries also with numbers.
struct DecimalTests {
    /// Lists of equal values, in ascending order.
    private static let ascending: [[EJSON]] = [
        [.number(.nan)], [.decimal("NaN")], [.decimal("abc")],
        [.number(-.infinity), .decimal("-Infinity"), .decimal("-1e9999999999999999999999")],
        [.decimal("-1e400")], [.number(-1e300), .decimal("-1e300"), .decimal("-10E+299")],
        [.number(-2), .decimal("-2"), .decimal("-2.000"), .decimal("-0.2e1")],
        [.decimal("-1.5"), .number(-1.5)], [.decimal("-1e-400")],
        [.number(0), .number(-0.0), .decimal("0"), .decimal("-0.00"), .decimal("0e99")],
        [.decimal("1e-400")], [.number(0.1), .decimal("0.1"), .decimal(".10"), .decimal("1e-1")],
        [.decimal("0.1000000000000000055511151231257827")], [.decimal("0.11")],
        [
            .number(1), .decimal("1"), .decimal("1.0"), .decimal("1.00"), .decimal("+1."),
            .decimal("0001"),
        ],
        [.decimal("1.00000000000000000001")], [.decimal("1.00000000000000000002")],
        [.number(2), .decimal("2")], [.decimal("10"), .number(10)],
        [.number(123_456_789), .decimal("123456789.0")], [.decimal("1e400"), .decimal("10e399")],
        [.number(.infinity), .decimal("Infinity")], ["text"],
    ]

    @Test func decimalsAndNumbersHaveOneOrder() {
        for (place, first) in DecimalTests.ascending.enumerated() {
            for (other, second) in DecimalTests.ascending.enumerated() {
                for (mine, value) in first.flatMap({ mine in second.map { (mine, $0) } }) {
                    let order = EJSON.order(mine, value)
                    #expect(order.signum() == (place - other).signum(), "\(mine) \(value)")
                    let isEqual = mine.equals(value, keyOrder: true)
                    #expect(isEqual == (place == other), "\(mine) \(value)")
                    if isEqual { #expect(EJSONKey(mine).hashValue == EJSONKey(value).hashValue) }
                }
            }
        }
    }

    /// The comparison outside of queries tells their kinds apart, as Meteor's EJSON does.
    @Test func decimalsEqualDecimals() {
        #expect(EJSON.decimal("1.0") == .decimal("1.00"))
        #expect(EJSON.decimal("1.0") != .decimal("1.01"))
        #expect(EJSON.decimal("1.0") != .number(1))
        #expect(EJSON.decimal("x") == .decimal("x"))
        #expect(EJSON.decimal("x") != .decimal("y"))
    }

    @Test func selectorsFindEqualDecimals() throws {
        let documents: [(DocumentID, EJSONObject)] = [
            (DocumentID("a"), ["v": .decimal("1.0")]), (DocumentID("b"), ["v": 1]),
            (DocumentID("c"), ["v": [.decimal("1.000"), 5]]), (DocumentID("d"), ["v": "1.0"]),
            (DocumentID("e"), ["v": .decimal("NaN")]),
        ]
        func find(_ condition: EJSON) throws -> String {
            try Query(selector: ["v": condition]).results(of: documents)
                .map { $0.id.wire }.joined()
        }
        for one in [EJSON.decimal("1.00"), 1] {
            let many = EJSON.array((10..<30).map { .number(Double($0)) } + [one])
            for condition in [one, ["$in": [one]], ["$in": many], ["$gte": one, "$lte": one]] {
                #expect(try find(condition) == "abc", "\(condition)")
            }
            #expect(try find(["$nin": many]) == "de")
            #expect(try find(["$ne": one]) == "de")
        }
        #expect(try find(["$gt": .decimal("0.99"), "$lt": 2]) == "abc")
        #expect(try find(["$lt": .decimal("NaN")]) == "")
    }

    @Test func listsHoldADecimalOnce() throws {
        let fields: EJSONObject = ["l": [.decimal("1.0"), 2]]
        func changed(_ modifier: EJSON) throws -> EJSON? {
            try Modifier(modifier, now: 0).apply(to: fields, id: DocumentID("a"))["l"]
        }
        #expect(try changed(["$addToSet": ["l": .decimal("1.00")]]) == [.decimal("1.0"), 2])
        #expect(try changed(["$pullAll": ["l": [.decimal("1"), .decimal("2.0")]]]) == .array([]))
    }
}
