import Testing
import Wire

@testable import Documents

struct SortPrefixTests {
    /// Values whose beginnings are equal or nearly so.
    private static let values: [EJSON?] = [
        nil, .null, .bool(false), .bool(true), .number(.nan), .number(-.infinity), .number(-1.5),
        .number(-1), .number(-0.0), .number(0), .number(.leastNonzeroMagnitude), .number(1),
        .number(1.5),
        .number(.infinity), .decimal("1"), .decimal("1.00"), .decimal("-1.25"), .decimal("NaN"),
        "", "\0", "\0a", "a", "a\0", "a\0b", "ab", "b", "\u{7F}", "\u{E9}", "\u{FF}", "\u{D7FF}",
        "\u{E000}", "\u{EFFF}", "\u{F000}", "\u{FFFF}", "\u{10000}", "\u{10FFFF}", "\u{FFFF}b",
        .string(String(repeating: "x", count: 13)), .string(String(repeating: "x", count: 14)),
        .string(String(repeating: "x", count: 22)), .string(String(repeating: "x", count: 23)),
        .string(String(repeating: "x", count: 40) + "a"),
        .string(String(repeating: "x", count: 40) + "b"), .date(-5), .date(0), .date(5), [:],
        ["a": 1], .array([]), [1], .bytes([]), .bytes([1]),
        ObjectID(hex: "0123456789abcdef01234567").map { .objectID($0) },
        ObjectID(hex: "f123456789abcdef01234567").map { .objectID($0) },
        .pattern(EJSONPattern(source: "a", flags: "")), .custom(EJSONCustom(type: "t", value: 1)),
    ]

    private func order(_ first: [EJSON?], _ second: [EJSON?], _ isDescending: [Bool]) -> Int {
        for (number, (first, second)) in zip(first, second).enumerated() {
            let order = EJSON.order(first, second).signum()
            if order != 0 { return isDescending[number] ? -order : order }
        }
        return 0
    }

    private func prefix(_ values: [EJSON?], _ isDescending: [Bool]) -> SortPrefix {
        var prefix = SortPrefix()
        for (value, isDescending) in zip(values, isDescending) {
            prefix.append(value, isDescending: isDescending)
        }
        return prefix
    }

    @Test(arguments: [false, true]) func prefixesOfOneValueHaveItsOrder(isDescending: Bool) {
        for first in SortPrefixTests.values {
            for second in SortPrefixTests.values {
                let order = SortPrefix.order(
                    prefix([first], [isDescending]), prefix([second], [isDescending]))
                let expected = self.order([first], [second], [isDescending])
                #expect(order ?? expected == expected, "\(String(describing: (first, second)))")
            }
        }
    }

    @Test func prefixesOfSeveralValuesHaveTheirOrder() {
        var numbers = SeededNumbers(seed: 9)
        var decided = 0
        for _ in 0..<20_000 {
            let isDescending = (0..<4).map { _ in Bool.random(using: &numbers) }
            let values = (0..<2).map { _ in
                (0..<4).map { _ in
                    SortPrefixTests.values[
                        Int.random(in: 0..<SortPrefixTests.values.count, using: &numbers)]
                }
            }
            var (first, second) = (values[0], values[1])
            // Equal beginnings.
            let common = Int.random(in: 0...4, using: &numbers)
            second.replaceSubrange(0..<common, with: first[..<common])
            if Bool.random(using: &numbers) { swap(&first, &second) }
            let order = SortPrefix.order(
                prefix(first, isDescending), prefix(second, isDescending))
            guard let order else { continue }
            decided += 1
            #expect(order == self.order(first, second, isDescending))
        }
        #expect(decided > 5_000)
    }

    @Test func shortKeysAreDecidedByTheirPrefixes() {
        func order(_ first: [EJSON?], _ second: [EJSON?]) -> Int? {
            let directions = first.map { _ in false }
            return SortPrefix.order(prefix(first, directions), prefix(second, directions))
        }
        #expect(order([5, "short"], [5, "short"]) == 0)
        #expect(order([5, "a title"], [5, "a titles"]) == -1)
        #expect(order([5, .bool(true), .null, nil], [5, .bool(true), .null, .null]) == -1)
        #expect(order([.string(String(repeating: "x", count: 40))], ["x"]) == 1)
        #expect(order([[1]], [[2]]) == nil)
    }
}
