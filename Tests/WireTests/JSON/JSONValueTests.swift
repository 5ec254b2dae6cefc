import Simulator
import Testing
import Wire

struct JSONValueTests {
    @Test(
        arguments: [
            (.null, "null"), (true, "true"), (false, "false"),
            (.integer(.min), "-9223372036854775808"),
            ("", #""""#), ("a\"b\\c/", #""a\"b\\c/""#), ("\u{8}\u{C}\n\r\t", #""\b\f\n\r\t""#),
            ("\0\u{1}\u{1F}\u{B}", #""\u0000\u0001\u001f\u000b""#),
            ("\u{7F}\u{2028}\u{2029}é😀", "\"\u{7F}\u{2028}\u{2029}é😀\""),
            ([], "[]"), ([:], "{}"), ([1, "a", nil, [2.5]], #"[1,"a",null,[2.5]]"#),
            (["b": 1, "a": ["c": true]], #"{"b":1,"a":{"c":true}}"#), (["\n": 0], #"{"\n":0}"#),
        ] as [(JSONValue, String)])
    func isWrittenCompactly(value: JSONValue, text: String) throws {
        #expect(try value.text == text)
        #expect(try JSONValue(parsing: text) == value)
    }

    @Test func writingAppends() throws {
        var bytes = Array("a".utf8)
        try JSONValue.bool(true).write(to: &bytes)
        #expect(bytes == Array("atrue".utf8))
    }

    @Test func tooDeepIsNotWritten() throws {
        var value: JSONValue = []
        for _ in 1..<512 { value = .array([value]) }
        _ = try value.text
        let error = #expect(throws: RealtimeError.self) { try JSONValue.array([value]).text }
        #expect(error?.code == .invalidArgument)
    }

    @Test func objectsAreEqualInAnyOrder() throws {
        #expect(try JSONValue(parsing: #"{"a":1,"b":[2]}"#) == ["b": [2], "a": 1])
        #expect(["a": 1] as JSONValue != ["a": 1, "b": 2])
        #expect(["a": 1, "c": 2] as JSONValue != ["a": 1, "b": 2])
        #expect(JSONValue.integer(1) != .number(1))
        #expect([1, 2] as JSONValue != [2, 1])
    }

    @Test func valuesAreFoundByNameAndIndex() throws {
        let value = try JSONValue(parsing: #"{"a":[{"b":"c"},2,1.5],"t":true}"#)
        #expect(value["a"]?[0]?["b"]?.stringValue == "c")
        #expect(value["a"]?[1]?.integerValue == 2)
        #expect(value["a"]?[1]?.doubleValue == 2)
        #expect(value["a"]?[2]?.doubleValue == 1.5)
        #expect(value["a"]?[2]?.integerValue == nil)
        #expect(value["a"]?[3] == nil)
        #expect(value["a"]?[-1] == nil)
        #expect(value["a"]?["b"] == nil)
        #expect(value["t"]?.boolValue == true)
        #expect(value[0] == nil)
    }

    /// Below and above the number of members that get an index.
    @Test(arguments: [1, 5, 16, 17, 18, 100]) func membersKeepTheirOrder(count: Int) {
        var object = JSONObject()
        for index in 0..<count { object["n\(index)"] = .integer(Int64(index)) }
        object["n0"] = "changed"
        #expect(object.members.map(\.name) == (0..<count).map { "n\($0)" })
        #expect(object["n0"] == "changed")
        object["none"] = nil
        object["n\(count / 2)"] = nil
        #expect(object.count == count - 1)
        #expect(object["n\(count / 2)"] == nil)
        for index in 1..<max(count, 1) where index != count / 2 {
            #expect(object["n\(index)"] == .integer(Int64(index)))
        }
        object["n\(count / 2)"] = "again"
        #expect(object.members.last?.name == "n\(count / 2)")
        for name in object.members.map(\.name) { object[name] = nil }
        #expect(object.isEmpty)
    }

    @Test(arguments: 1...20) func randomValuesSurviveARoundTrip(seed: UInt64) throws {
        var random = Random(seed: seed)
        for _ in 0..<40 {
            let value = randomValue(&random, depth: 0)
            let text = try value.text
            #expect(try JSONValue(parsing: text) == value)
            let spaced = spread(text, &random)
            #expect(try JSONValue(parsing: spaced) == value)
            // In an array, because a message that is a string is not quoted.
            let message = Array("{\"data\":[\(spaced)]}".utf8).withUnsafeBytes {
                SpreadbotEnvelope.message($0)
            }
            #expect(message?.data == Array("[\(text)]".utf8))
        }
    }

    /// Random changes of bytes give an error, or a value that can be written again.
    @Test(arguments: 1...20) func damagedTextsAreReadOrRefused(seed: UInt64) throws {
        var random = Random(seed: seed)
        for _ in 0..<300 {
            var bytes = Array(try randomValue(&random, depth: 0).text.utf8)
            for _ in 0...random.below(3) where !bytes.isEmpty {
                bytes[random.below(bytes.count)] = UInt8(random.below(256))
            }
            guard let value = try? JSONValue(parsing: bytes) else { continue }
            #expect(try JSONValue(parsing: value.text).text == value.text)
        }
    }

    private func randomValue(_ random: inout Random, depth: Int) -> JSONValue {
        switch random.below(depth > 5 ? 5 : 8) {
        case 0: return random.pick([.null, true, false])
        case 1: return .integer(Int64(bitPattern: random.next()) >> Int64(random.below(64)))
        case 2: return .number(Double(random.below(1 << 50)) + 0.5)
        case 3, 4: return .string(randomText(&random))
        case 5:
            return .array((0..<random.below(6)).map { _ in randomValue(&random, depth: depth + 1) })
        default:
            var object = JSONObject()
            for _ in 0..<random.below(random.chance(10) ? 40 : 6) {
                object[randomText(&random)] = randomValue(&random, depth: depth + 1)
            }
            return .object(object)
        }
    }

    private func randomText(_ random: inout Random) -> String {
        var text = ""
        for _ in 0..<random.length(upTo: 40) {
            let limit = random.pick([0x20, 0x80, 0x80, 0x800, 0x11_0000])
            let scalar = Unicode.Scalar(UInt32(random.below(limit))) ?? "\u{FFFD}"
            text.unicodeScalars.append(scalar)
        }
        return text
    }

    /// The text with blanks between its tokens.
    private func spread(_ text: String, _ random: inout Random) -> String {
        var result = ""
        var isInString = false
        var isEscaped = false
        for scalar in text.unicodeScalars {
            if !isInString, ",:[]{}".unicodeScalars.contains(scalar) {
                result += random.pick(["", " ", "\n\t", "\r\n  "])
                result.unicodeScalars.append(scalar)
                result += random.pick(["", " ", "  "])
            } else {
                result.unicodeScalars.append(scalar)
            }
            if scalar == "\"", !isEscaped { isInString.toggle() }
            isEscaped = scalar == "\\" && !isEscaped
        }
        return result
    }
}
