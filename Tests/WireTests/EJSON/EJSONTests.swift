import Testing

@testable import Wire

struct EJSONTests {
    @Test(
        arguments: [
            "null", "true", "5", "-2.5", "1e+21", #""a\"b""#, "[]", "[1,[null]]", "{}",
            #"{"b":1,"a":{"c":2}}"#, #"{"$date":-5}"#, #"{"$binary":"AAE="}"#, #"{"$InfNaN":0}"#,
            #"{"$InfNaN":1}"#, #"{"$InfNaN":-1}"#, #"{"$regexp":"a|b","$flags":"gi"}"#,
            #"{"$type":"oid","$value":"0123456789abcdef01234567"}"#,
            #"{"$type":"Decimal","$value":"1.50"}"#, #"{"$type":"T","$value":{"$date":1,"b":[2]}}"#,
            #"{"$escape":{"$date":1}}"#, #"{"$date":1,"x":1}"#, #"{"$foo":1}"#, #"{"$type":"x"}"#,
            #"{"$escape":{"$date":{"$escape":{"$date":2}}}}"#,
            #"{"$escape":{"$escape":{"$escape":{"$date":1}}}}"#,
            #"{"$escape":{"$type":1,"$value":{"$date":5}}}"#, #"{"$a":1,"$b":2,"$c":3}"#,
        ])
    func isWrittenAsItWasRead(text: String) throws {
        let value = try EJSON(parsing: text)
        #expect(value.text == text)
        #expect(try EJSON(parsing: value.canonicalText) == value)
    }

    @Test func kindsAreDecoded() throws {
        #expect(try EJSON(parsing: #"{"$date":1.9}"#) == .date(1))
        #expect(try EJSON(parsing: #"{"$date":null}"#) == .date(0))
        #expect(try EJSON(parsing: #"{"$binary":"AAE="}"#) == .bytes([0, 1]))
        #expect(try EJSON(parsing: #"{"$InfNaN":0}"#) == .number(.nan))
        #expect(try EJSON(parsing: "-0").text == "0")
        let id = try #require(ObjectID(hex: "0123456789ABCDEF01234567"))
        #expect(id.hex == "0123456789abcdef01234567")
        #expect(
            try EJSON(parsing: #"{"$value":"0123456789abcdef01234567","$type":"oid"}"#)
                == .objectID(id))
        #expect(
            try EJSON(parsing: #"{"$regexp":"a","$flags":"igix"}"#).text
                == #"{"$regexp":"a","$flags":"gi"}"#)
    }

    @Test func keysAreSortedByCodeUnits() throws {
        let text = "{\"\u{FFFD}\":1,\"\u{1F600}\":2,\"b\":{\"z\":1,\"a\":2},\"\":0}"
        #expect(
            try EJSON(parsing: text).canonicalText
                == "{\"\":0,\"b\":{\"a\":2,\"z\":1},\"\u{1F600}\":2,\"\u{FFFD}\":1}")
        #expect(
            try EJSON(parsing: #"{"$regexp":"a","$flags":"i"}"#).canonicalText
                == #"{"$flags":"i","$regexp":"a"}"#)
    }

    @Test(
        arguments: [
            "", "{", "[1,]", #"{"$type":"oid","$value":"xyz"}"#, #"{"$type":"oid","$value":1}"#,
            #"{"$binary":"A"}"#, #"{"$binary":"A==="}"#, "1e400",
        ])
    func invalidTextsAreRefused(text: String) {
        #expect { try EJSON(parsing: text) } throws: { error in
            (error as? RealtimeError)?.code == .protocolViolation
        }
    }

    @Test func depthIsLimited() throws {
        func nested(_ levels: Int) -> String {
            String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
        }
        _ = try EJSON(parsing: nested(128))
        #expect(throws: RealtimeError.self) { try EJSON(parsing: nested(129)) }
        #expect(throws: RealtimeError.self) {
            try EJSON(parsing: nested(513), maximumDepth: 10_000)
        }
    }

    @Test(
        arguments: [
            (#"{"a":1,"b":2}"#, #"{"b":2,"a":1}"#, true, false),
            (#"[{"a":1,"b":2}]"#, #"[{"b":2,"a":1}]"#, true, false), ("1", "1.0", true, true),
            (#"{"a":null}"#, "{}", false, false), (#""\u00e9""#, #""e\u0301""#, false, false),
            (#"{"$date":5}"#, "5", false, false), ("[1,2]", "[2,1]", false, false),
            (#"{"$binary":"AQ=="}"#, #"{"$binary":"AQ=="}"#, true, true),
            (#"{"$InfNaN":0}"#, #"{"$InfNaN":0}"#, true, true),
            (#"{"\u00e9":1}"#, #"{"e\u0301":1}"#, false, false),
        ])
    func equality(first: String, second: String, isEqual: Bool, isEqualInOrder: Bool) throws {
        let (first, second) = (try EJSON(parsing: first), try EJSON(parsing: second))
        #expect((first == second) == isEqual)
        #expect(first.equals(second, keyOrder: true) == isEqualInOrder)
    }

    @Test func largeObjectsAreSearchedByHash() throws {
        var object = EJSONObject()
        for number in 0..<1000 { object["k\(number)"] = .number(Double(number)) }
        #expect(object["k999"] == .number(999))
        object["k500"] = nil
        object["k0"] = .null
        #expect(object.count == 999)
        #expect(object["k500"] == nil)
        #expect(object["k501"] == .number(501))
        #expect(object.fields[0].value == .null)
        let name = Array("k999".utf8)
        #expect(name.withUnsafeBytes { object[$0] } == .number(999))
        #expect(object == object)
    }

    @Test func ofEqualKeysTheLastOneCounts() throws {
        #expect(try EJSON(parsing: #"{"a":1,"b":2,"a":3}"#).text == #"{"a":3,"b":2}"#)
    }
}

struct DocumentIDTests {
    @Test(
        arguments: [
            (#""x""#, "x"), (#""-x""#, "--x"), (#""~1""#, "-~1"), (#""{}""#, "-{}"), (#""""#, ""),
            (#""0123456789abcdef01234567""#, "-0123456789abcdef01234567"),
            (#""0123456789ABCDEF01234567""#, "0123456789ABCDEF01234567"), ("5", "~5"),
            ("null", "~null"), ("true", "~true"),
            (#"{"$type":"oid","$value":"0123456789abcdef01234567"}"#, "0123456789abcdef01234567"),
        ])
    func formsOnTheWire(value: String, wire: String) throws {
        let value = try EJSON(parsing: value)
        let id = try #require(DocumentID(value))
        #expect(id.wire == wire)
        #expect(id.value == value)
        #expect(DocumentID(wire: wire) == id)
    }

    @Test func otherForms() throws {
        #expect(try #require(DocumentID(wire: "-")).value == nil)
        #expect(DocumentID(wire: "~x") == nil)
        for wire in ["~", "~[1]", "~{}", #"~"a""#, #"~{"$date":1}"#, "~1e999"] {
            #expect(DocumentID(wire: wire) == nil, "\(wire)")
        }
        // No server writes these.
        #expect(DocumentID(wire: "~5.0") == DocumentID(wire: "~5"))
        #expect(DocumentID(wire: "-abc") == DocumentID(wire: "abc"))
        #expect(DocumentID(wire: "{a") == DocumentID(.string("{a")))
        #expect(DocumentID(.array([])) == nil)
        #expect(DocumentID(.number(.nan)) == nil)
        for length in [0, 1, 17, 23, 24, 25, 400] {
            let text = String(repeating: "x", count: length)
            let id = try #require(DocumentID(wire: text))
            #expect(id.wire == text)
            #expect(id.byteCount == length)
            #expect(id == DocumentID(.string(text)))
            #expect(id != DocumentID(.string(text + "y")))
        }
        #expect(DocumentID(wire: "\u{e9}") != DocumentID(wire: "e\u{301}"))
    }
}
