import Testing
import Wire

/// B6: messages as JSON, alone and in batches.
@Suite struct SpreadbotEnvelopeTests {
    private func message(_ text: String) -> SpreadbotEnvelope? {
        Array(text.utf8).withUnsafeBytes { SpreadbotEnvelope.message($0) }
    }

    private func batch(_ text: String) -> [SpreadbotEnvelope]? {
        guard var batch = Array(text.utf8).withUnsafeBytes({ SpreadbotBatch(parsing: $0) }) else {
            return nil
        }
        let (hasMessages, lastID) = (batch.hasMessages, batch.lastID)
        var all: [SpreadbotEnvelope] = []
        while let envelope = batch.next() { all.append(envelope) }
        #expect(batch.isEmpty)
        #expect(all.contains { $0.data != nil } == hasMessages)
        #expect(all.last { $0.id != nil }?.id == lastID)
        return all
    }

    private func check(
        _ envelope: SpreadbotEnvelope?, _ id: String?, _ event: String?, _ data: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        func text(_ bytes: [UInt8]?) -> String? {
            bytes.map { String(decoding: $0, as: UTF8.self) }
        }
        #expect(text(envelope?.id) == id, sourceLocation: sourceLocation)
        #expect(text(envelope?.event) == event, sourceLocation: sourceLocation)
        #expect(text(envelope?.data) == data, sourceLocation: sourceLocation)
    }

    @Test func allMembers() {
        check(message(#"{"id":"7","event":"news","data":"hello"}"#), "7", "news", "hello")
        check(message(#" { "data" : "x" } "#), nil, nil, "x")
        check(message(#"{"data":"a\nb\u00e9","more":[1,{}]}"#), nil, nil, "a\nbé")
    }

    @Test func anythingButAStringIsCompactJSON() {
        for (data, text) in [
            ("{ \"a\" : [ 1 , 2.50 ] }", "{\"a\":[1,2.50]}"), ("null", "null"), ("true", "true"),
            ("1e3", "1e3"), ("[]", "[]"), ("\t1e400\n", "1e400"), ("[ ]", "[]"), ("{\n}", "{}"),
            (#"[ "\u0041 \\" , 1E5 ]"#, #"["\u0041 \\",1E5]"#),
            (#"{ "b" : " x \" y " , "c" : -0 }"#, #"{"b":" x \" y ","c":-0}"#),
        ] {
            check(message("{\"data\":\(data)}"), nil, nil, text)
        }
    }

    @Test func anIDIsAStringOrAnInteger() {
        check(message(#"{"id":42,"data":""}"#), "42", nil, "")
        check(message(#"{"id":-9223372036854775808,"data":""}"#), "-9223372036854775808", nil, "")
        check(message(#"{"id":18446744073709551615,"data":""}"#), "18446744073709551615", nil, "")
        for id in ["1.5", "1e3", "null", "true", "[1]", "{}", "\"\""] {
            check(message("{\"id\":\(id),\"data\":\"x\"}"), nil, nil, "x")
        }
    }

    @Test func anIDThatNoHeaderCanHoldIsIgnored() {
        for id in [#"a\r\nX: y"#, #"\u0000"#, #"\u007f"#, String(repeating: "1", count: 4097)] {
            check(message("{\"id\":\"\(id)\",\"data\":\"x\"}"), nil, nil, "x")
        }
        check(
            message("{\"id\":1\(String(repeating: "0", count: 5000)),\"data\":\"x\"}"), nil, nil,
            "x")
    }

    @Test func anEventIsANonEmptyString() {
        for event in ["1", "null", "\"\"", "[]"] {
            check(message("{\"event\":\(event),\"data\":\"x\"}"), nil, nil, "x")
        }
    }

    @Test(arguments: [
        "", " ", "x", "1", "null", "[]", "\"data\"", "{}", "{\"id\":1}", "{\"data\":}",
        "{\"data\":1", "{\"data\":1}x", "{\"data\":\"\\x\"}", "[{\"data\":1}]",
    ]) func otherTextsAreNotEnvelopes(text: String) {
        #expect(message(text) == nil)
    }

    @Test func theLastMemberOfANameCounts() {
        check(
            message(#"{"data":1,"id":"a","data":"x","i\u0064":2,"id":null,"event":"e"}"#), nil, "e",
            "x")
        check(message(#"{"id":"a","d\u0061ta":"x","\u0069\u0064":2}"#), "2", nil, "x")
        #expect(batch(#"{"messages":[{"id":1,"data":1}],"messages":[]}"#) == [])
        #expect(batch(#"{"messages":[{"data":1}],"messages":2}"#) == nil)
        #expect(batch(#"{"messages":3,"m\u0065ssages":[{"data":1}]}"#)?.count == 1)
    }

    @Test func escapesAreDecoded() {
        check(
            message(
                #"{"data":"01234567\b\f\n\r\t\/\\\"\u0041\u00e9\u20AC\ud83d\ude00 and more text"}"#
            ), nil, nil, "01234567\u{8}\u{c}\n\r\t/\\\"Aé€😀 and more text")
        check(message(#"{"data":"\ude00\ud83dx"}"#), nil, nil, "\u{FFFD}\u{FFFD}x")
        let invalid: [UInt8] = Array("{\"data\":\"".utf8) + [0xFF] + Array("\"}".utf8)
        #expect(invalid.withUnsafeBytes { SpreadbotEnvelope.message($0) } == nil)
    }

    @Test func depthCountsFromTheWholeText() {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        check(message("{\"data\":\(nested(127))}"), nil, nil, nested(127))
        #expect(message("{\"data\":\(nested(128))}") == nil)
        #expect(batch("{\"messages\":[{\"data\":\(nested(125))}]}")?.count == 1)
        #expect(batch("{\"messages\":[{\"data\":\(nested(126))}]}") == nil)
    }

    @Test func anAnswersIDIsItsLastElements() throws {
        var batch = try #require(
            Array(#"{"messages":[{"data":1} , 2 , {"data":3} ] }"#.utf8).withUnsafeBytes {
                SpreadbotBatch(parsing: $0)
            })
        batch.idOfAnswer = Array("9".utf8)
        #expect(batch.next()?.id == nil)
        #expect(batch.next()?.data == nil)
        check(batch.next(), "9", nil, "3")
        #expect(batch.next() == nil)
    }

    @Test func deepDataIsRefusedWithoutHarm() {
        let deep = String(repeating: "[", count: 100_000)
        #expect(message("{\"data\":\(deep)}") == nil)
        #expect(message("{\"data\":\(deep)") == nil)
    }

    @Test func aBatchKeepsItsOrder() throws {
        let all = try #require(
            batch(#"{"messages":[{"id":1,"data":"a"},{"data":"b"},{"id":"3","data":{"c":1}}]}"#))
        #expect(all.count == 3)
        check(all.first, "1", nil, "a")
        check(all.last, "3", nil, "{\"c\":1}")
        #expect(batch(#"{"messages":[]}"#) == [])
    }

    @Test func anElementWithoutMessageKeepsItsID() throws {
        let all = try #require(
            batch(#"{"messages":[{"id":1,"event":"deleted"},{"data":"b"},3,{}]}"#))
        #expect(all.map { $0.data == nil } == [true, false, true, true])
        #expect(all.first?.id == Array("1".utf8))
    }

    @Test(arguments: [
        "", "[]", "{}", #"{"messages":1}"#, #"{"messages":{}}"#,
        #"{"messages":[{"data":1}]"#, #"[{"data":1}]"#,
    ]) func otherTextsAreNotBatches(text: String) {
        #expect(batch(text) == nil)
    }
}
