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

    @Test func valuesAreReadInPlace() throws {
        let text = #" {"id":12,"e":"a\nb","d":"plain","x":[null,true,-1.5,{}],"d":"last"} "#
        try read(text) { root in
            #expect(root.kind == .object)
            let values = root.members.map(\.value)
            #expect(values[0].integer == 12)
            #expect(values[0].double == 12)
            #expect(values[0].string == nil)
            #expect(values[1].string == "a\nb")
            #expect(values[4].string == "last")
            #expect(root.string == nil)
            #expect(root.bool == nil)
            let elements = Array(values[3].elements)
            #expect(elements.map(\.kind) == [.null, .bool, .number, .object])
            #expect(elements[1].bool == true)
            #expect(elements[2].integer == nil)
            #expect(elements[2].double == -1.5)
            #expect(Array(elements[2].members).isEmpty)
            #expect(Array(elements[3].members).isEmpty)
            #expect(Array(root.elements).isEmpty)
            #expect(root.members.compactMap(\.name.string) == ["id", "e", "d", "x", "d"])
            #expect(String(decoding: elements[2].source, as: UTF8.self) == "-1.5")
        }
    }

    /// Few values are allowed whatever the limit is.
    @Test(arguments: [(65_536, true), (65_537, false)])
    func theNumberOfValuesIsLimited(count: Int, isRead: Bool) {
        let text = "[" + String(repeating: "1,", count: count - 2) + "1]"
        var document = JSONDocument()
        do throws(RealtimeError) {
            let found = try Array(text.utf8).withUnsafeBufferPointer {
                bytes throws(RealtimeError) in
                try document.read(UnsafeRawBufferPointer(bytes), maximumTokens: 10) {
                    Array($0.elements).count
                }
            }
            #expect(isRead && found == count - 1)
        } catch {
            #expect(!isRead && error.code == .tooLarge)
        }
    }

    /// A string without escapes uses the bytes of the text.
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

    @Test(
        arguments: [
            ("9223372036854775807", .max), ("-9223372036854775808", .min), ("0", 0), ("-0", 0),
            ("9223372036854775808", nil), ("-9223372036854775809", nil), ("1.0", nil), ("1e0", nil),
            ("99999999999999999999999", nil), ("\"1\"", nil), ("true", nil),
        ] as [(String, Int64?)])
    func integers(text: String, value: Int64?) throws {
        #expect(try read(text) { $0.integer } == value)
    }

    @Test func storageIsReused() throws {
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

    @Test func errorsOfTheCallerAreRethrown() {
        #expect(throws: RealtimeError(.auth, "no")) {
            try read("1") { _ throws(RealtimeError) -> Int in throw RealtimeError(.auth, "no") }
        }
    }
}
