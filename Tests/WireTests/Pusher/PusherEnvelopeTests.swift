import Testing
import Wire

/// The table of docs/pusher-rules.md, U2.
@Suite struct PusherEnvelopeTests {
    private func read(_ text: String) throws(RealtimeError) -> PusherEvent {
        var reader = PusherEnvelopeReader()
        return try read(text, &reader)
    }

    private func read(
        _ text: String, _ reader: inout PusherEnvelopeReader
    ) throws(RealtimeError) -> PusherEvent {
        let bytes = Array(text.utf8)
        return try bytes.withUnsafeBufferPointer { bytes throws(RealtimeError) in
            try reader.read(UnsafeRawBufferPointer(bytes)) { PusherEvent($0) }
        }
    }

    private func text(_ bytes: [UInt8]?) -> String? {
        bytes.map { String(decoding: $0, as: UTF8.self) }
    }

    private func value(_ event: PusherEvent) -> JSONValue? {
        (try? event.withData { data throws(RealtimeError) in data.value }) ?? nil
    }

    @Test func allMembers() throws {
        let event = try read(
            #"{"event":"client-typing","channel":"presence-lobby","data":"{\"on\":true}","#
                + #""user_id":"u-3"}"#)
        #expect(text(event.event) == "client-typing")
        #expect(text(event.channel) == "presence-lobby")
        #expect(event.dataKind == .text)
        #expect(text(event.dataBytes) == #"{"on":true}"#)
        #expect(text(event.userID) == "u-3")
        #expect(value(event) == ["on": true])
    }

    @Test func onlyTheEventIsNeeded() throws {
        let event = try read(#" { "event" : "" } "#)
        #expect(text(event.event) == "")
        #expect(event.channel == nil && event.userID == nil)
        #expect(event.dataKind == .none && event.dataBytes == [])
        #expect(value(event) == nil)
    }

    @Test(
        arguments: [
            // As received, the raw text, the value.
            (#""{\"a\":[1]}""#, #"{"a":[1]}"#, ["a": [1]]),
            (#""[]""#, "[]", []), (#""12""#, "12", 12), (#""\"hi\"""#, #""hi""#, "hi"),
            (#""null""#, "null", nil), ("\"hello\"", "hello", "hello"), ("\"\"", "", ""),
            (#""{\"a\":""#, #"{"a":"#, #"{"a":"#), (#""1e400""#, "1e400", "1e400"),
            (#""9007199254740993""#, "9007199254740993", 9_007_199_254_740_993),
            (#""\u00e9\/\ud83d\ude00""#, "é/😀", "é/😀"),
        ] as [(String, String, JSONValue)])
    func dataThatIsAString(data: String, raw: String, parsed: JSONValue) throws {
        let event = try read("{\"event\":\"e\",\"data\":\(data)}")
        #expect(event.dataKind == .text)
        #expect(text(event.dataBytes) == raw)
        #expect(value(event) == parsed)
    }

    @Test(
        arguments: [
            ("{ \"a\" : [ 1 , \"x y\" ] }", #"{"a":[1,"x y"]}"#, ["a": [1, "x y"]]),
            ("[\n]", "[]", []), ("12", "12", 12), ("-1.50e2", "-1.50e2", -150.0),
            ("true", "true", true),
            ("false", "false", false), ("{}", "{}", [:]),
            ("9223372036854775807", "9223372036854775807", 9_223_372_036_854_775_807),
            (#"{"a":"\" \\ "}"#, #"{"a":"\" \\ "}"#, ["a": "\" \\ "]),
        ] as [(String, String, JSONValue)])
    func dataThatIsAnotherValue(data: String, raw: String, parsed: JSONValue) throws {
        let event = try read("{\"event\":\"e\",\"data\":\(data)}")
        #expect(event.dataKind == .json)
        #expect(text(event.dataBytes) == raw)
        #expect(value(event) == parsed)
    }

    @Test func nullIsNoData() throws {
        let event = try read(#"{"event":"e","data":null,"channel":null,"user_id":null}"#)
        #expect(event.dataKind == .none && event.channel == nil && event.userID == nil)
    }

    @Test func aUserIDMayBeANumber() throws {
        #expect(text(try read(#"{"event":"e","user_id":17}"#).userID) == "17")
        #expect(try read(#"{"event":"e","user_id":["17"]}"#).userID == nil)
    }

    @Test func escapesAreDecodedEverywhere() throws {
        let event = try read(
            #"{"ev\u0065nt":"\u0065\n","chann\u0065l":"\u0063","data":"\u0064","#
                + #""user\u005fid":"\u0075","m\u006fre":1}"#)
        #expect(text(event.event) == "e\n")
        #expect(text(event.channel) == "c")
        #expect(text(event.dataBytes) == "d")
        #expect(text(event.userID) == "u")
        #expect(text(event.property("more")) == "1")
    }

    @Test func theLastMemberOfANameCounts() throws {
        let event = try read(
            #"{"event":1,"event":"a","data":"x","data":2,"channel":"c","channel":3}"#)
        #expect(text(event.event) == "a")
        #expect(event.dataKind == .json && text(event.dataBytes) == "2")
        #expect(event.channel == nil)
    }

    @Test func otherMembersAreReadByName() throws {
        let event = try read(#"{"event":"e","tags":{"a": "b"},"time_ms":5,"é":"x"}"#)
        #expect(text(event.property("tags")) == #"{"a": "b"}"#)
        #expect(text(event.property("time_ms")) == "5")
        #expect(text(event.property("é")) == "\"x\"")
        #expect(text(event.property("event")) == "\"e\"")
        #expect(event.property("data") == nil)
    }

    @Test(arguments: [
        "", " ", "x", "1", "null", "[]", "\"event\"", "{}", #"{"data":1}"#, #"{"event":1}"#,
        #"{"event":null}"#, #"{"event":{}}"#, #"{"event":"a"}x"#, #"{"event":"a""#,
        #"[{"event":"a"}]"#,
    ]) func otherTextsAreNotMessages(text: String) {
        #expect { try read(text) } throws: { error in
            (error as? RealtimeError)?.code == .protocolViolation
        }
    }

    @Test func aReaderIsUsedAgain() throws {
        var reader = PusherEnvelopeReader()
        for size in [10, 100_000, 3, 1000] {
            let long = String(repeating: #"\"\u00e9"#, count: size)
            let event = try read(#"{"event":"\u0065","data":"\#(long)"}"#, &reader)
            #expect(text(event.event) == "e")
            #expect(text(event.dataBytes) == String(repeating: "\"é", count: size))
            #expect(throws: RealtimeError.self) { try read("{", &reader) }
        }
    }
}
