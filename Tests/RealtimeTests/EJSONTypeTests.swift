import Realtime
import Testing

private struct Money: EJSONType, Equatable {
    static let ejsonName = "Money"
    var cents: Double

    init(cents: Double) { self.cents = cents }

    var ejsonValue: EJSON { ["cents": .number(cents)] }

    init(ejsonValue: EJSON) throws {
        guard case .object(let object) = ejsonValue, case .number(let cents)? = object["cents"]
        else { throw NoMoney() }
        self.cents = cents
    }
}

private struct NoMoney: Error {}

private struct Other: EJSONType {
    static let ejsonName = "Other"
    var ejsonValue: EJSON { .null }
    init(ejsonValue: EJSON) {}
}

struct EJSONTypeTests {
    @Test func valuesAreEncodedAndDecoded() throws {
        let value = EJSON(Money(cents: 5))
        #expect(value.text == #"{"$type":"Money","$value":{"cents":5}}"#)
        let read = try EJSON(parsing: value.text)
        #expect(try read.decoded(as: Money.self) == Money(cents: 5))
        let inferred: Money? = try read.decoded()
        #expect(inferred == Money(cents: 5))
    }

    @Test func otherValuesAreNotDecoded() throws {
        let value = EJSON(Money(cents: 5))
        #expect(try value.decoded(as: Other.self) == nil)
        #expect(try EJSON.number(5).decoded(as: Money.self) == nil)
        #expect(throws: NoMoney.self) {
            try EJSON(parsing: #"{"$type":"Money","$value":5}"#).decoded(as: Money.self)
        }
    }
}
