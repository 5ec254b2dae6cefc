import Testing
import Wire

/// Texts that RFC 8259 allows, forbids, or leaves open.
struct JSONParsingTests {
    @Test(
        arguments: [
            ("null", .null), ("true", true), ("false", false), (" \t\r\n0 \t\r\n", 0), ("-1", -1),
            ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)),
            ("1.5", 1.5), ("1.0", 1.0), ("1e2", 100.0), ("1E+2", 100.0), ("25e-1", 2.5),
            ("0.1e1", 1.0), ("0e0", 0.0), ("1e-400", 0.0),
            ("1.7976931348623157e308", .number(.greatestFiniteMagnitude)),
            ("5e-324", .number(.leastNonzeroMagnitude)),
            ("2.2250738585072014e-308", .number(.leastNormalMagnitude)),
            ("\"\"", ""), ("\"a\"", "a"), (#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{C}\n\r\t"),
            (#""\u0000""#, "\0"), (#""\u00e9\u00C9""#, "éÉ"), (#""\uD83D\ude00""#, "😀"),
            (#""\uFFFE\uffff""#, "\u{FFFE}\u{FFFF}"), (#""\uE000\ud7ff""#, "\u{E000}\u{D7FF}"),
            ("\"\u{7F}\u{2028}\u{2029}\u{FEFF}\"", "\u{7F}\u{2028}\u{2029}\u{FEFF}"),
            ("\"日本語 😀 ß\"", "日本語 😀 ß"), (#""a\\""#, "a\\"), (#""\\u0041""#, "\\u0041"),
            ("[]", []), ("[ ]", []), ("{}", [:]), ("{ }", [:]), ("[[],{}]", [[], [:]]),
            ("[1,2 , 3]", [1, 2, 3]), ("[null]", [nil]), (#"{"":0}"#, ["": 0]),
            (#"{"a":{"b":[true]}, "c" : "d"}"#, ["a": ["b": [true]], "c": "d"]),
            (#"{"\u0061":1}"#, ["a": 1]), (#"{"a\nb":1}"#, ["a\nb": 1]),
        ] as [(String, JSONValue)])
    func isRead(text: String, value: JSONValue) throws {
        #expect(try JSONValue(parsing: text) == value)
        #expect(try JSONValue(parsing: "[\(text)]") == [value])
        #expect(try JSONValue(parsing: "{\"k\":\(text)\n}") == ["k": value])
    }

    /// JavaScript writes them, and UTF-8 cannot encode them.
    @Test(arguments: [
        (#""\uD800""#, "\u{FFFD}"), (#""\uDC00""#, "\u{FFFD}"), (#""\uD800\n""#, "\u{FFFD}\n"),
        (#""\uD800\uD800""#, "\u{FFFD}\u{FFFD}"), (#""\uD800x""#, "\u{FFFD}x"),
        (#""\uD83D\u0041""#, "\u{FFFD}A"), (#""\uDE00\uD83D""#, "\u{FFFD}\u{FFFD}"),
        (#""\uD800\uD83D\uDE00""#, "\u{FFFD}😀"),
    ])
    func halfASurrogatePairIsReplaced(text: String, value: String) throws {
        #expect(try JSONValue(parsing: text) == .string(value))
        #expect(try EJSON(parsing: text) == .string(value))
    }

    @Test(arguments: [
        ("", 0), (" ", 1), ("\n\t", 2), ("nul", 0), ("nulll", 4), ("True", 0), ("NULL", 0),
        ("truefalse", 4), ("true false", 5), ("undefined", 0), ("NaN", 0), ("Infinity", 0),
        ("-Infinity", 1), ("-", 1), ("--1", 1), ("+1", 0), (".5", 0), ("-.5", 1), ("1.", 2),
        ("1.e1", 2), ("01", 1), ("-01", 2), ("00", 1), ("0x1", 1), ("1e", 2), ("1e+", 3),
        ("1e1.5", 3), ("1 000", 2), ("1_000", 1), ("1a", 1), ("１", 0), ("1,2", 1),
        ("\"", 1), ("\"a", 2), ("'a'", 0), ("\"a\"b", 3), (#""\""#, 3), (#""\x41""#, 2),
        (#""\U0041""#, 2), (#""\a""#, 2), (#""\'""#, 2), (#""\0""#, 2), (#""\u""#, 3),
        (#""\u12""#, 5), (#""\u123""#, 6), (#""\u12G4""#, 5), (#""\u+123""#, 3),
        (#""\uD800\u12""#, 11),
        ("\"\n\"", 1), ("\"\t\"", 1), ("\"\0\"", 1), ("\"aaaaaaaa\u{1F}aaaaaaaa\"", 9),
        ("\"\u{7}\"", 1), ("[", 1), ("]", 0), ("[1", 2), ("[1,", 3), ("[1,]", 3), ("[,1]", 1),
        ("[1,,2]", 3), ("[1 2]", 3), ("[1;2]", 2), ("[1}", 2), ("[1]]", 3), ("[]]", 2),
        ("[\"a\"", 4),
        ("{", 1), ("}", 0), ("{\"a\"", 4), ("{\"a\":", 5), ("{\"a\":1", 6), ("{\"a\":1,", 7),
        ("{\"a\":1,}", 7), ("{,}", 1), ("{\"a\"}", 4), ("{\"a\" 1}", 5), ("{\"a\"::1}", 5),
        ("{\"a\":}", 5), ("{a:1}", 1), ("{'a':1}", 1), ("{1:1}", 1), ("{null:1}", 1),
        ("{\"a\":1 \"b\":2}", 7), ("{\"a\":1;\"b\":2}", 6), ("{\"a\":1,,}", 7), ("{\"a\":1]", 6),
        ("{\"a\",1}", 4), ("{[]:1}", 1), ("{}}", 2), ("[1]x", 3), ("[1]\0", 3), ("\0", 0),
        ("\u{B}1", 0),
        ("\u{C}1", 0), ("\u{A0}1", 0), ("\u{2028}1", 0), ("\u{FEFF}1", 0), ("//c\n1", 0),
        ("/**/1", 0), ("1//c", 1), ("#c\n1", 0), ("[1,/**/2]", 3), ("<a>", 0), ("abc", 0), ("*", 0),
    ])
    func isRefused(text: String, offset: Int) {
        let error = #expect(throws: RealtimeError.self) { try JSONValue(parsing: text) }
        #expect(error?.code == .protocolViolation)
        #expect(error?.message.hasPrefix("JSON, byte \(offset): ") == true, "\(error as Any)")
    }

    @Test(
        arguments: [
            ([0x22, 0xFF, 0x22], 1), ([0x22, 0x61, 0x80, 0x22], 2), ([0x22, 0xC0, 0xAF, 0x22], 1),
            ([0x22, 0xED, 0xA0, 0x80, 0x22], 2), ([0x22, 0xF4, 0x90, 0x80, 0x80, 0x22], 2),
            ([0x22, 0xE2, 0x82, 0x22], 3), ([0x22, 0xE2, 0x82], 3), ([0xFF], 0), ([0xFE, 0xFF], 0),
            ([0x5B, 0x31, 0x5D, 0xC3], 4), ([0x31, 0, 0x32, 0], 1),
        ] as [([UInt8], Int)])
    func bytesThatAreNoTextAreRefused(bytes: [UInt8], offset: Int) {
        let error = #expect(throws: RealtimeError.self) { try JSONValue(parsing: bytes) }
        #expect(error?.message.hasPrefix("JSON, byte \(offset): ") == true, "\(error as Any)")
    }

    @Test func faultsAreNamed() {
        for (text, message) in [
            ("[1,]", #"JSON, byte 3: "]" where a value belongs"#),
            ("[1", #"JSON, byte 2: the text ends where "," or "]" belongs"#),
            ("{\"a\" 1}", #"JSON, byte 5: "1" where ":" belongs"#),
            (
                "\"\n\"",
                "JSON, byte 1: a byte of value 10 within a string, where it must be escaped"
            ),
            ("\"a", "JSON, byte 2: the text ends within a string"),
            ("1e400", "JSON, byte 0: a number beyond the range of a double"),
        ] {
            let error = #expect(throws: RealtimeError.self) { try JSONValue(parsing: text) }
            #expect(error?.message == message)
        }
    }

    @Test func everyTruncationIsRefused() throws {
        let text = Array(
            #"{"a":[1,-2.5e+10,"x\u00e9\ud83d\ude00é",null,true,false,{}],"b":{"c":[[]]}}"#.utf8)
        _ = try JSONValue(parsing: text)
        for count in text.indices {
            #expect(throws: RealtimeError.self) { try JSONValue(parsing: Array(text[..<count])) }
        }
    }

    /// Escapes and faults at every offset within the bytes that are read together.
    @Test func stringsOfEveryLengthAreReadToTheirEnd() throws {
        for count in 0...40 {
            let inside = String(repeating: "x", count: count)
            #expect(try JSONValue(parsing: "\"\(inside)\"").stringValue == inside)
            #expect(try JSONValue(parsing: "[\"\(inside)\",1]") == [.string(inside), 1])
            for place in 0...count {
                for (raw, meaning) in [
                    ("\\\"", "\""), ("é", "é"), ("\u{7F}", "\u{7F}"), ("!", "!"),
                    ("\\\\", "\\"), ("\\\\\\\"", "\\\""), ("\\\"\\\"a\\\"", "\"\"a\""),
                    ("\\n\\/", "\n/"), ("\\\"\\u00e9\\\"", "\"é\""), ("\\\\n", "\\n"),
                ] {
                    let head = inside.prefix(place)
                    let tail = inside.dropFirst(place)
                    let value = try JSONValue(parsing: "\"\(head)\(raw)\(tail)\"")
                    #expect(value == .string("\(head)\(meaning)\(tail)"))
                }
                let unknown = "\"\(inside.prefix(place))\\x\(inside.dropFirst(place))\""
                #expect(throws: RealtimeError.self) { try JSONValue(parsing: unknown) }
                let open = "\"\(inside.prefix(place))\\\""
                #expect(throws: RealtimeError.self) { try JSONValue(parsing: open) }
                let broken = "\"\(inside.prefix(place))\u{1F}\(inside.dropFirst(place))\""
                let error = #expect(throws: RealtimeError.self) { try JSONValue(parsing: broken) }
                #expect(error?.message.hasPrefix("JSON, byte \(place + 1): ") == true)
            }
        }
    }

    @Test func depthIsLimited() throws {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":", "}]")] {
            let each = open.count > 5 ? 2 : 1
            func nested(_ times: Int) -> String {
                let value = open == "[" ? "" : "1"
                return String(repeating: open, count: times) + value
                    + String(repeating: close, count: times)
            }
            _ = try JSONValue(parsing: nested(128 / each))
            #expect(throws: RealtimeError.self) { try JSONValue(parsing: nested(128 / each + 1)) }
            let deep = try JSONValue(parsing: nested(512 / each), maximumDepth: .max)
            #expect(try JSONValue(parsing: deep.text, maximumDepth: 512) == deep)
            let error = #expect(throws: RealtimeError.self) {
                try JSONValue(parsing: nested(512 / each + 1), maximumDepth: .max)
            }
            #expect(error?.message.hasSuffix("nested deeper than 512") == true)
        }
        #expect(try JSONValue(parsing: "1", maximumDepth: 0) == 1)
        #expect(throws: RealtimeError.self) { try JSONValue(parsing: "[]", maximumDepth: 0) }
        #expect(throws: RealtimeError.self) { try JSONValue(parsing: "[]", maximumDepth: -1) }
        _ = try JSONValue(parsing: "[[]]", maximumDepth: 2)
    }

    @Test func depthBombsAreRefused() {
        for bomb in ["[", "{\"\":", "[{\"\":", "[[],"] {
            #expect(throws: RealtimeError.self) {
                try JSONValue(parsing: String(repeating: bomb, count: 100_000))
            }
        }
    }

    @Test func theLastMemberOfANameCounts() throws {
        let value = try JSONValue(parsing: #"{"a":1,"b":2,"\u0061":3,"b":null}"#)
        #expect(value == ["a": 3, "b": nil])
        #expect(try value.text == #"{"a":3,"b":null}"#)
    }

    @Test func namesAreComparedByteForByte() throws {
        let value = try JSONValue(parsing: "{\"\u{E9}\":1,\"e\u{301}\":2}")
        #expect(value.objectValue?.count == 2)
        #expect(value["\u{E9}"] == 1)
        #expect(value["e\u{301}"] == 2)
        #expect(JSONValue.string("\u{E9}") != .string("e\u{301}"))
        #expect(["\u{E9}": 1] as JSONValue != ["e\u{301}": 1])
    }

    @Test func aMillionElementsAndMembersAreRead() throws {
        let array = try JSONValue(
            parsing: "[" + String(repeating: "0,", count: 999_999) + "0]")
        #expect(array.arrayValue?.count == 1_000_000)
        let names = (0..<20_000).map { "\"n\($0)\":\($0)" }.joined(separator: ",")
        let object = try JSONValue(parsing: "{\(names)}")
        #expect(object.objectValue?.count == 20_000)
        #expect(object["n19999"] == 19_999)
        #expect(object["n20000"] == nil)
    }
}
