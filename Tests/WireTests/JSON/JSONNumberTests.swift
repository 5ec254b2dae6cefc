import Simulator
import Testing
import Wire

struct JSONNumberTests {
    @Test(
        arguments: [
            ("9223372036854775808", 9223372036854775808.0),
            ("-9223372036854775809", -9223372036854775808.0),
            ("18446744073709551616", 18446744073709551616.0),
            ("123456789012345678901234567890", 123456789012345678901234567890.0),
            ("9007199254740993.0", 9007199254740992.0), ("9007199254740991e0", 9007199254740991.0),
            ("0.1", 0.1), ("0.30000000000000004", 0.30000000000000004), ("1e22", 1e22),
            ("1e23", 1e23), ("123e-22", 123e-22), ("123e-23", 123e-23), ("1e-22", 1e-22),
            ("-0", -0.0), ("-0.0", -0.0), ("-0e5", -0.0), ("0e400", 0.0), ("0.0e-400", 0.0),
            ("2.4703282292062327e-324", 0.0), ("2.4703282292062328e-324", .leastNonzeroMagnitude),
            ("1e000000000000000000001", 10.0), ("100e-000000000000000002", 1.0),
            ("4.35", 4.35), ("2.2250738585072009e-308", Double.leastNormalMagnitude.nextDown),
        ] as [(String, Double)])
    func isTheNearestDouble(text: String, value: Double) throws {
        guard case .number(let number) = try JSONValue(parsing: text) else {
            Issue.record("\(text) is not a number")
            return
        }
        #expect(number.bitPattern == value.bitPattern, "\(number)")
    }

    @Test(arguments: [
        "1e309", "-1e309", "1e400", "1e99999999999999999999", "1.7976931348623159e308",
        String(repeating: "9", count: 400), "1e9223372036854775808",
    ])
    func beyondEveryDoubleIsRefused(text: String) throws {
        #expect(throws: RealtimeError.self) { try JSONValue(parsing: text) }
        var document = JSONDocument()
        let bytes = Array(text.utf8)
        try bytes.withUnsafeBufferPointer { bytes throws(RealtimeError) in
            try document.read(UnsafeRawBufferPointer(bytes)) { root in
                #expect(root.double == nil)
                #expect(root.integer == nil)
                #expect(String(decoding: root.source, as: UTF8.self) == text)
            }
        }
    }

    @Test func hugeNumbersAreReadInTime() throws {
        let digits = String(repeating: "7", count: 200_000)
        #expect(try JSONValue(parsing: "0.\(digits)") == .number(0.7777777777777778))
        #expect(try JSONValue(parsing: "\(digits)e-199999") == .number(7.777777777777778))
        #expect(throws: RealtimeError.self) { try JSONValue(parsing: digits) }
        #expect(try JSONValue(parsing: "1e-\(digits)") == 0.0)
    }

    @Test(
        arguments: [
            (1, "1"), (-1, "-1"), (0, "0"), (-0.0, "-0"), (0.1, "0.1"), (1.5, "1.5"), (100, "100"),
            (1e20, "100000000000000000000"), (1e21, "1e+21"), (1.5e21, "1.5e+21"),
            (1e16, "10000000000000000"),
            (123456789012345683968, "123456789012345680000"), (1e-6, "0.000001"),
            (1.25e-6, "0.00000125"), (1e-7, "1e-7"), (1.25e-7, "1.25e-7"), (1e-5, "0.00001"),
            (.leastNonzeroMagnitude, "5e-324"), (1.7976931348623157e308, "1.7976931348623157e+308"),
            (1234.5678, "1234.5678"), (1e300, "1e+300"), (0.000123, "0.000123"),
            (12345678901234567168, "12345678901234567000"),
            (4.35, "4.35"), (1 / 3.0, "0.3333333333333333"), (9007199254740992, "9007199254740992"),
        ] as [(Double, String)])
    func isWrittenAsJavaScriptDoes(value: Double, text: String) throws {
        #expect(try JSONValue.number(value).text == text)
    }

    @Test func nonNumbersAreNotWritten() {
        for value in [Double.infinity, -.infinity, .nan] {
            var bytes = Array("kept".utf8)
            let error = #expect(throws: RealtimeError.self) {
                try JSONValue.array([1, .number(value)]).write(to: &bytes)
            }
            #expect(error?.code == .invalidArgument)
            #expect(bytes == Array("kept".utf8))
        }
    }

    /// The fast path agrees with the standard library, and written numbers are read as the same
    /// value.
    @Test(arguments: 1...20) func randomNumbersSurviveARoundTrip(seed: UInt64) throws {
        var random = Random(seed: seed)
        for _ in 0..<2000 {
            var value = Double(bitPattern: random.next())
            if random.chance(50) { value = Double(random.below(1 << 40)) / 1000 }
            guard value.isFinite else { continue }
            let text = try JSONValue.number(value).text
            let again = try JSONValue(parsing: text).doubleValue
            #expect(again?.bitPattern == value.bitPattern, "\(text)")

            let digits = random.below(1 << random.within(1...62))
            let token = "\(digits).\(random.below(1000))e\(random.within(-330...290))"
            guard let expected = Double(token), expected.isFinite else { continue }
            #expect(try JSONValue(parsing: token) == .number(expected), "\(token)")
        }
    }
}
