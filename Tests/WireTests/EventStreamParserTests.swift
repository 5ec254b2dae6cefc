import Simulator
import Testing

@testable import Wire

/// The vectors of the specification's section 7, in its order.
@Suite struct EventStreamParserTests {
    @Test func lineEndsMayBeCutAnywhere() {
        expect("data:a\r\n\r\n", [event("a")])
        expect("data:a\r\r", [event("a")])
        expect("data:a\r\r\ndata:b\n\n", [event("a"), event("b")])
        // Three pieces, with cuts inside both line ends.
        let pieces = ["data:a\r", "\n\r", "\n"].map { Array($0.utf8) }
        #expect(Heard(pieces).told == [event("a")])
    }

    @Test func aCarriageReturnEndsItsLineAtOnce() {
        var parser = EventStreamParser()
        #expect(
            Heard(continuing: [Array("data:a\r\r".utf8)], &parser).told == [event("a")])
    }

    @Test func dataLinesAreJoined() {
        expect("data\n\ndata\ndata\n\ndata:", [event(""), event("\n")])
        expect("data:\ndata:x\n\n", [event("\nx")])
    }

    @Test func onlyABodysFirstByteOrderMarkIsRemoved() {
        expect([0xEF, 0xBB, 0xBF] + Array("data:a\n\n".utf8), [event("a")])
        expect([0xEF, 0xBB, 0xBF, 0xEF, 0xBB, 0xBF] + Array("data:a\n\n".utf8), [])
        expect("data:1\n\n\u{FEFF}data:2\n\ndata:3\n\n", [event("1"), event("3")])
        // Only the beginning of one: it belongs to the line.
        for begun: [UInt8] in [[0xEF], [0xEF, 0xBB]] {
            expect(begun + Array("data:a\ndata:b\n\n".utf8), [event("b")])
            expect(begun + Array("\ndata:b\n\n".utf8), [event("b")])
            expect(begun, [])
        }
    }

    @Test func idsStayUntilTheyAreReplaced() {
        expect(Array("id:1\nid:a\0b\ndata:x\n\n".utf8), [event("x", id: "1", hadID: true)])
        expect("id:7\n\n", [], last: "7")
        expect("id:6\n\nid:7\ndata:x\n", [], last: "6")
        expect(
            "id:1\ndata:a\n\nid\ndata:b\n\n",
            [event("a", id: "1", hadID: true), event("b", hadID: true)], last: "")
        expect("data:a\n\n", [event("a", id: "9")], last: "9", seed: "9")
        expect("id:1\ndata:a\n\n\n\n", [event("a", id: "1", hadID: true)], last: "1")
        expect("id:7\n\ndata:x\n\n", [event("x", id: "7")], last: "7")
        expect("id:1\nid:2\ndata:x\n\n", [event("x", id: "2", hadID: true)], last: "2")
    }

    @Test func aRetryNeedsNoBlankLine() {
        for (line, time) in [
            ("retry:03000", 3000), ("retry: 10", 10), ("retry:0", 0),
            ("retry:86400001", 86_400_000),
            ("retry:" + String(repeating: "9", count: 40), 86_400_000),
            ("retry:" + String(repeating: "0", count: 40) + "7", 7),
        ] as [(String, Int64)] {
            expect(line + "\n", [.retry(time)], retry: time)
        }
        for value in ["1000x", "-5", "+5", "1.5", "10 ", "1_0", "", "\u{661}", "\t5", "  5"] {
            expect("retry:5\nretry:\(value)\n", [.retry(5)], retry: 5)
        }
        expect("retry\n", [])
        expect("retry:5", [])
    }

    @Test func typesBelongToOneBlock() {
        expect("event:ping\n\ndata:y\n\n", [event("y")])
        expect("event:x\nevent:\ndata:y\n\n", [event("y")])
        expect("event:a\nevent:b\ndata:y\n\n", [event("y", type: "b")])
        expect("event:a\nevent\ndata:y\n\n", [event("y")])
        expect("event:a\nevents:b\ndata:y\n\n", [event("y", type: "a")])
    }

    @Test func oneLeadingSpaceIsRemoved() {
        expect("data:  two\ndata:\tt\n\n", [event(" two\n\tt")])
        expect("data: \n\n", [event("")])
        expect("event:  a\nid:  b\ndata:x\n\n", [event("x", type: " a", id: " b", hadID: true)])
    }

    @Test func namesMustMatchExactly() {
        expect("Data:x\ndata :y\n data:z\n\n", [])
        expect("dat:x\ndataa:y\nd\nda\ndat\ndataa\nevent:e\nidd:5\nretryy:5\n\n", [])
        expect("i\nr\nretr:5\ne:x\neven\n", [])
    }

    @Test func commentsAreReportedAsTheyCome() {
        expect(
            ":data:no\n:\n: x\ndata:y\n:z\n\n",
            [.comment("data:no"), .comment(""), .comment(" x"), .comment("z"), event("y")])
        let stream = Array(":a\ndata:y\n:b\n\n:c".utf8)
        for pieces in splits(stream) {
            #expect(Heard(pieces, reportsComments: false).told == [event("y")])
        }
        expect([0x3A, 0xFF, 0x0A], [.comment("\u{FFFD}")])
    }

    @Test func textIsComparedByBytes() {
        expect("data:\u{301}x\n\n", [event("\u{301}x")])
        expect("data: \u{301}x\n\n", [event("\u{301}x")])
        let kept = "a\u{2028}b\u{85}c\u{B}d\u{C}e\u{1E}f\u{2029}g"
        expect("data:\(kept)\n\n", [event(kept)])
    }

    @Test func illFormedTextIsRepaired() {
        expect(
            Array("data:".utf8) + [
                0xE2, 0x82, 0x41, 0xF0, 0x9F, 0x98, 0xC0, 0x80, 0xED, 0xA0, 0x80,
            ]
                + [0x0A, 0x0A],
            [event("\u{FFFD}A" + String(repeating: "\u{FFFD}", count: 6))])
        expect(Array("data:".utf8) + [0xE2, 0x82, 0x0A, 0x0A], [event("\u{FFFD}")])
        expect(
            Array("event:".utf8) + [0xFF, 0x0A] + Array("id:".utf8) + [0x80, 0x0A]
                + Array("data:x\n\n".utf8),
            [event("x", type: "\u{FFFD}", id: "\u{FFFD}", hadID: true)])
        // The id goes back to the server unchanged.
        #expect(Heard([Array("id:".utf8) + [0x80, 0x0A, 0x0A]]).lastEventID == [0x80])
        // A sequence that a line end cuts is not joined with the next line.
        expect(
            Array("data:".utf8) + [0xC3, 0x0A] + Array("data:".utf8) + [0xA9, 0x0A, 0x0A],
            [event("\u{FFFD}\n\u{FFFD}")])
    }

    @Test func aNULIsAllowedInDataButNotInNames() {
        expect("data:\0\n\n", [event("\0")])
        expect("data\0:2\ndata:1\n\n", [event("1")])
    }

    @Test func unfinishedEventsAreDropped() {
        expect("data:x\n", [])
        expect("data:x", [])
        expect("", [])
    }

    @Test func fieldsMayComeInAnyOrder() {
        expect(
            "data:1\rid:q\r\ndata:2\n:c\rda-ta:9\ndata\r\n\n",
            [.comment("c"), event("1\n2\n", id: "q", hadID: true)], last: "q")
    }

    @Test func longLinesEndAnywhereInABlock() {
        // Lines that end before, at and after the ends of the scanner's blocks, ASCII and not.
        for length in 0..<300 {
            for letter in ["a", "é"] {
                let value = String(repeating: "x", count: length) + letter
                let stream = "data:\(value)\rdata:\(letter)\(value)\n\n"
                let told = Heard([Array(stream.utf8)]).told
                #expect(told == [event("\(value)\n\(letter)\(value)")])
            }
        }
    }
}

@Suite struct EventStreamBodyTests {
    @Test func theIDOutlivesItsBody() {
        var parser = EventStreamParser()
        let first = Heard(continuing: [Array("retry:7\nid:1\ndata:a\n\nid:2\ndata".utf8)], &parser)
        #expect(first.told == [.retry(7), event("a", id: "1", hadID: true)])
        parser.endBody()
        #expect(parser.lastEventID == Array("1".utf8) && parser.reconnectionTime == 7)
        let bom: [UInt8] = [0xEF, 0xBB, 0xBF]
        let second = Heard(continuing: [bom + Array("data:b\n\n".utf8)], &parser)
        #expect(second.told == [event("b", id: "1")])
    }

    /// P11: a half-read line, a held CR or a byte order mark does not affect the next body.
    @Test(arguments: ["data:a\r", "event:x\nda", ":com", "data:a\n", "\u{FEFF}", "id:4", "retry:5"])
    func nothingOfABodyReachesTheNext(beginning: String) {
        for pieces in splits(Array(beginning.utf8)) {
            var parser = EventStreamParser(reportsComments: true)
            _ = Heard(continuing: pieces, &parser)
            parser.endBody()
            let rest = Array("\ndata:b\n\n".utf8)
            #expect(Heard(continuing: [rest], &parser).told == [event("b")])
            #expect(parser.lastEventID.isEmpty && parser.reconnectionTime == nil)
        }
        var parser = EventStreamParser()
        _ = Heard(continuing: [[0xEF, 0xBB]], &parser)
        parser.endBody()
        #expect(
            Heard(continuing: [[0xBF] + Array("\ndata:b\n\n".utf8)], &parser).told == [event("b")])
    }

    @Test(
        arguments: [
            ("data:12345\n\n", 10, 0, 0, false), ("data:12345\n\n", 9, 0, 0, true),
            ("data:12345", 9, 0, 0, true), ("data\n", 3, 0, 0, true), ("dat\n", 2, 0, 0, false),
            ("data:12\ndata:34\n\n", 0, 5, 0, false), ("data:12\ndata:34\n\n", 0, 4, 0, true),
            ("data\ndata\ndata\n\n", 0, 2, 0, false), ("data\ndata\ndata\n\n", 0, 1, 0, true),
            ("id:abc\nevent:abc\ndata:abcdef\n\n", 0, 0, 3, false), ("id:abcd\n", 0, 0, 3, true),
            ("event:abcd\n", 0, 0, 3, true), ("id: abc\n", 0, 0, 3, false),
            (":comment\n", 5, 0, 0, true), ("retry:00000001\n", 10, 0, 0, true),
            ("unknown: of any length\ndata:x\n\n", 8, 1, 1, false),
        ] as [(String, Int, Int, Int, Bool)])
    func limitsAreKept(stream: String, line: Int, data: Int, name: Int, isTooLarge: Bool) {
        var rules = NaiveEventStream.Rules()
        (rules.line, rules.data, rules.name) = (line, data, name)
        let bytes = Array(stream.utf8)
        #expect(NaiveEventStream(bytes, rules).isTooLarge == isTooLarge)
        for pieces in splits(bytes) {
            let limits = EventStreamParser.Limits(line: line, data: data, name: name)
            #expect(Heard(pieces, limits).isTooLarge == isTooLarge, "\(stream) as \(pieces)")
        }
    }

    @Test func aCommentWithoutAListenerMayHaveAnyLength() {
        let limits = EventStreamParser.Limits(line: 8, data: 8, name: 8)
        let stream = Array((":" + String(repeating: "c", count: 100) + "\ndata:x\n\n").utf8)
        for pieces in splits(stream) {
            let heard = Heard(pieces, limits, reportsComments: false)
            #expect(heard.told == [event("x")] && !heard.isTooLarge)
        }
    }

    @Test func aFailedParserAcceptsNothingUntilItsBodyEnds() {
        var parser = EventStreamParser(limits: EventStreamParser.Limits(line: 6, data: 0, name: 0))
        #expect(Heard(continuing: [Array("data:12".utf8)], &parser).isTooLarge)
        #expect(Heard(continuing: [Array("\n\ndata:1\n\n".utf8)], &parser).isTooLarge)
        parser.endBody()
        #expect(Heard(continuing: [Array("data:1\n\n".utf8)], &parser).told == [event("1")])
    }

    /// Streams made of the format's own words, cut at random, compared with the naive parser.
    @Test func bothParsersReadRandomStreamsAlike() {
        var random = SeededGenerator(seed: 4)
        let words = [
            "data", "event", "id", "retry", ":", ":", ":", " ", "\n", "\n", "\n", "\r", "\r\n", "x",
            "é", "0", "12", "\0", "\u{FEFF}", "\u{2028}", "dat", "a long value of many bytes",
        ].map { Array($0.utf8) }
        for round in 0..<20_000 {
            var stream: [UInt8] = []
            for _ in 0..<Int.random(in: 0..<24, using: &random) {
                stream += words.randomElement(using: &random) ?? []
            }
            if round % 5 == 0, let place = stream.indices.randomElement(using: &random) {
                stream[place] = UInt8.random(in: 0...255, using: &random)
            }
            var rules = NaiveEventStream.Rules()
            if round % 3 == 0 {
                rules.line = Int.random(in: 0...30, using: &random)
                rules.data = Int.random(in: 0...30, using: &random)
                rules.name = Int.random(in: 0...8, using: &random)
            }
            rules.reportsComments = round % 2 == 0
            var pieces: [[UInt8]] = []
            var rest = stream[...]
            while !rest.isEmpty {
                let count = Int.random(in: 1...rest.count, using: &random)
                pieces.append(Array(rest.prefix(count)))
                rest = rest.dropFirst(count)
            }
            let naive = NaiveEventStream(stream, rules, lastEventID: [0x39])
            let heard = Heard(
                pieces,
                EventStreamParser.Limits(line: rules.line, data: rules.data, name: rules.name),
                lastEventID: [0x39], reportsComments: rules.reportsComments)
            let same =
                heard.told == naive.told && heard.isTooLarge == naive.isTooLarge
                && heard.lastEventID == naive.lastEventID
                && heard.reconnectionTime == naive.reconnectionTime
            #expect(same, "round \(round): \(pieces)")
        }
    }
}
