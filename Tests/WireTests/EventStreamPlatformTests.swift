import Simulator
import Testing

@testable import Wire

/// The tests of the web platform's EventSource suite that concern the format, under their names
/// there. The event source's tests have those that need a connection.
@Suite struct EventStreamPlatformTests {
    @Test("event-data") func eventData() {
        expect(
            "data:msg\ndata:msg\n\n:\nfalsefield:msg\n\nfalsefield:msg\nData:data\n\ndata\n\n"
                + "data:end\n\n",
            [event("msg\nmsg"), .comment(""), event(""), event("end")])
    }

    @Test("format-bom") func formatBOM() {
        expect(
            "\u{FEFF}data:1\n\n\u{FEFF}data:2\n\ndata:3\n\n", [event("1"), event("3")])
    }

    @Test("format-bom-2") func formatBOM2() {
        expect(
            "\u{FEFF}\u{FEFF}data:1\n\ndata:2\n\ndata:3\n\n", [event("2"), event("3")])
    }

    @Test("format-comments") func formatComments() {
        let long = String(repeating: "x", count: 2 * 1024)
        expect(
            "data:1\r:\0\n:\r\ndata:2\n:\(long)\rdata:3\n:data:fail\r:\(long)\ndata:4\n\n",
            [
                .comment("\0"), .comment(""), .comment(long), .comment("data:fail"),
                .comment(long), event("1\n2\n3\n4"),
            ])
    }

    @Test("format-data-before-final-empty-line") func formatDataBeforeFinalEmptyLine() {
        let stream = "retry:1000\ndata:test1\n\nid:test\ndata:test2"
        expect(stream, [.retry(1000), event("test1")], last: "")
    }

    @Test("format-field-data") func formatFieldData() {
        expect("data:\n\ndata\ndata\n\ndata:test\n\n", [event(""), event("\n"), event("test")])
    }

    @Test("format-field-event") func formatFieldEvent() {
        expect("event:test\ndata:x\n\ndata:x\n\n", [event("x", type: "test"), event("x")])
    }

    @Test("format-field-event-empty") func formatFieldEventEmpty() {
        expect("event: \ndata:data\n\n", [event("data")])
    }

    @Test("format-field-id") func formatFieldID() {
        expect("data: hello\nid: …\n\n", [event("hello", id: "…", hadID: true)], last: "…")
    }

    /// The first event of the second connection has no id of its own, and so the old one.
    @Test("format-field-id-2") func formatFieldID2() {
        expect(
            "data:test1\nid:…\n\ndata:test2\n\n",
            [event("test1", id: "…", hadID: true), event("test2", id: "…")])
        expect("data:test3\n\n", [event("test3", id: "…")], last: "…", seed: "…")
    }

    @Test("format-field-id-3", arguments: ["id", "id:"]) func formatFieldID3(line: String) {
        expect(
            "id:1\n\ndata:1\n\ndata:2\n\n\(line)\ndata:3\n\ndata:4\n\n",
            [
                event("1", id: "1"), event("2", id: "1"), event("3", hadID: true), event("4"),
            ], last: "")
    }

    @Test("format-field-id-null") func formatFieldIDNull() {
        for id in ["\0", "x\0", "\0x", "x\0x", " \0"] {
            expect("id:\(id)\ndata:x\n\n", [event("x")], last: "")
        }
    }

    @Test("format-field-parsing") func formatFieldParsing() {
        expect(
            "data:\0\n data:4\rdata:1\n\ndata\0:2\ndata:x\n\nData:5\ndata_5:5\ndata-:6\n"
                + "data:\r\0data:4\ndata :7\ndata:9\n\n",
            [event("\0\n1"), event("x"), event("\n9")])
    }

    @Test("format-field-retry") func formatFieldRetry() {
        expect("retry:03000\ndata:x\n\n", [.retry(3000), event("x")], retry: 3000)
    }

    @Test("format-field-retry-bogus") func formatFieldRetryBogus() {
        expect(
            "retry:3000\nretry:1000x\ndata:x\n\n", [.retry(3000), event("x")], retry: 3000)
    }

    @Test("format-field-retry-empty") func formatFieldRetryEmpty() {
        expect("retry\ndata:test\n\n", [event("test")])
        #expect(Heard([Array("retry\ndata:test\n\n".utf8)]).reconnectionTime == nil)
    }

    @Test("format-field-unknown") func formatFieldUnknown() {
        expect(
            "data:test\n data\ndata\nfoobar:xxx\njustsometext\n:thisisacommentyay\ndata:test\n\n",
            [.comment("thisisacommentyay"), event("test\n\ntest")])
    }

    @Test("format-leading-space") func formatLeadingSpace() {
        expect("data:\ttest\rdata: \ndata:test\n\n", [event("\ttest\n\ntest")])
    }

    @Test("format-newlines") func formatNewlines() {
        expect(
            "data:test\r\ndata\ndata:test\r\n\r\ndata:a\rdata:b\r\rdata:c\n\n",
            [event("test\n\ntest"), event("a\nb"), event("c")])
    }

    @Test("format-null-character") func formatNullCharacter() {
        expect("data:\0\n\n\n\n", [event("\0")])
    }

    @Test("format-utf-8") func formatUTF8() {
        expect("data:ok…\n\n", [event("ok…")])
    }

    /// Arbitrary bytes, with the calls that a program might make between two pieces.
    @Test("eventsource-from-readable-stream") func eventSourceFromReadableStream() {
        var parser = EventStreamParser()
        let first = Heard(
            continuing: ["retry: 250\nid: 1\ndata: a", "\n\nda"].map { Array($0.utf8) }, &parser)
        #expect(first.told == [.retry(250), event("a", id: "1", hadID: true)])
        #expect(first.lastEventID == Array("1".utf8) && first.reconnectionTime == 250)
        let second = Heard(continuing: ["ta: b\n", "\n"].map { Array($0.utf8) }, &parser)
        #expect(second.told == [event("b", id: "1")])
    }
}
