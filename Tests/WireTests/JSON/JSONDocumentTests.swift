import Testing
import Wire

struct JSONDocumentTests {
    private func read<Result>(
        _ text: String, _ body: (JSONNode) throws(RealtimeError) -> Result
    ) throws(RealtimeError) -> Result {
        var document = JSONDocument()
        return try Array(text.utf8).withUnsafeBufferPointer { bytes throws(RealtimeError) in
            try document.read(UnsafeRawBufferPointer(bytes), body)
        }
    }

    @Test func valuesAreLookedAtWhereTheyStand() throws {
        let text = #" {"id":12,"e":"a\nb","d":"plain","x":[null,true,-1.5,{}],"d":"last"} "#
        try read(text) { root in
            #expect(root.kind == .object)
            #expect(root["id"]?.integer == 12)
            #expect(root["id"]?.double == 12)
            #expect(root["id"]?.string == nil)
            #expect(root["e"]?.string == "a\nb")
            #expect(root["e"]?.isString("a\nb") == true)
            #expect(root["e"]?.isString("a\\nb") == false)
            #expect(root["d"]?.string == "last")
            #expect(root["none"] == nil)
            #expect(root.string == nil)
            #expect(root.bool == nil)
            let elements = root["x"].map { Array($0.elements) } ?? []
            #expect(elements.map(\.kind) == [.null, .bool, .number, .object])
            #expect(elements[1].bool == true)
            #expect(elements[2].integer == nil)
            #expect(elements[2].double == -1.5)
            #expect(elements[2]["x"] == nil)
            #expect(Array(elements[3].members).isEmpty)
            #expect(Array(root.elements).isEmpty)
            #expect(root.members.compactMap(\.name.string) == ["id", "e", "d", "x", "d"])
            #expect(String(decoding: elements[2].source, as: UTF8.self) == "-1.5")
        }
    }

    /// The bytes of a string without escapes are those of the text.
    @Test func plainStringsAreBorrowed() throws {
        var document = JSONDocument()
        let text = Array(#"["abc","a\tc"]"#.utf8)
        try text.withUnsafeBufferPointer { bytes throws(RealtimeError) in
            let bytes = UnsafeRawBufferPointer(bytes)
            try document.read(bytes) { root in
                let strings = Array(root.elements)
                let plain = strings[0].withString {
                    $0.baseAddress == bytes.baseAddress.map { $0 + 2 }
                }
                #expect(plain == true)
                #expect(strings[1].withString { Array($0) } == Array("a\tc".utf8))
                #expect(root.withString { _ in true } == nil)
            }
        }
    }

    @Test(arguments: [
        (
            #" { "a" : [ 1.50 , 1E5 , -0, 12345678901234567890 ] , "b" : " x \" y " } "#,
            #"{"a":[1.50,1E5,-0,12345678901234567890],"b":" x \" y "}"#
        ),
        ("\t1e400\n", "1e400"), (#" "\u0041 \\" "#, #""\u0041 \\""#), ("[ ]", "[]"), ("{\n}", "{}"),
    ])
    func sourceIsKeptAsItWasWritten(text: String, compact: String) throws {
        #expect(try read(text) { $0.sourceText } == compact)
        #expect(try read("{\"d\": \(text)}") { $0["d"]?.sourceText } == compact)
    }

    @Test func lastMemberOfAMatchingNameIsFoundThroughEscapes() throws {
        try read(#"{"data":1,"d\u0061ta":2,"dat":3,"datas":4,"x":{"data":5}}"#) { root in
            #expect(root["data"]?.integer == 2)
        }
        try read("{\"\u{E9}\":1,\"e\u{301}\":2,\"\":3}") { root in
            #expect(root["\u{E9}"]?.integer == 1)
            #expect(root["e\u{301}"]?.integer == 2)
            #expect(root[""]?.integer == 3)
        }
    }

    @Test(
        arguments: [
            ("9223372036854775807", .max), ("-9223372036854775808", .min), ("0", 0), ("-0", 0),
            ("9223372036854775808", nil), ("-9223372036854775809", nil), ("1.0", nil), ("1e0", nil),
            ("99999999999999999999999", nil), ("\"1\"", nil), ("true", nil),
        ] as [(String, Int64?)])
    func integers(text: String, value: Int64?) throws {
        #expect(try read(text) { $0.integer } == value)
    }

    @Test func storageIsUsedAgain() throws {
        var document = JSONDocument()
        let texts = [
            "[" + String(repeating: "1,", count: 100_000) + "1]", "[1,2]", "x", "{\"a\":[]}",
            "\"s\"",
        ]
        for text in texts + texts.reversed() {
            let bytes = Array(text.utf8)
            let count: Int? = try? bytes.withUnsafeBufferPointer { bytes throws(RealtimeError) in
                try document.read(UnsafeRawBufferPointer(bytes)) { Array($0.elements).count }
            }
            #expect(
                count
                    == ["x": nil, "[1,2]": 2, "{\"a\":[]}": 0, "\"s\"": 0][text, default: 100_001])
        }
    }

    @Test func whatTheCallerThrowsComesOut() {
        #expect(throws: RealtimeError(.auth, "no")) {
            try read("1") { _ throws(RealtimeError) -> Int in throw RealtimeError(.auth, "no") }
        }
    }
}
