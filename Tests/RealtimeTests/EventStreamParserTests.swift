import Testing

@testable import Realtime

@Suite struct EventStreamParserTests {
    private func event(
        _ data: String, _ event: String = "message", id: String = "", hadID: Bool = false
    ) -> EventSource.Event {
        EventSource.Event(id: id, event: event, data: data, hadID: hadID)
    }

    @Test func eventsComeFromPieces() throws {
        let parser = try EventStreamParser(lastEventID: "7")
        #expect(try parser.feed(Array("retry: 250\ndata: a".utf8)) == [])
        #expect(try parser.feed("\n\nid: 1\nevent: tick\ndata: é\n".utf8) == [event("a", id: "7")])
        #expect(try parser.feed([0x0A][...]) == [event("é", "tick", id: "1", hadID: true)])
        #expect(parser.lastEventID == "1")
        #expect(parser.reconnectionTime == .milliseconds(250))
    }

    @Test func finishDropsUnfinishedEvents() throws {
        let parser = try EventStreamParser()
        _ = try parser.feed("id: 4\ndata: a\n\ndata: b\n".utf8)
        parser.finish()
        #expect(try parser.feed("\u{FEFF}data: c\n\n".utf8) == [event("c", id: "4")])
        parser.reset()
        #expect(parser.lastEventID == "" && parser.reconnectionTime == nil)
    }

    @Test func commentsAreReportedIfWanted() throws {
        let parser = try EventStreamParser()
        var comments: [String] = []
        parser.onComment = { comments.append($0) }
        _ = try parser.feed(": hi\n".utf8)
        parser.onComment = nil
        _ = try parser.feed(": there\n".utf8)
        #expect(comments == [" hi"])
    }

    @Test func linesAboveTheLimitAreRefused() throws {
        var limits = EventStreamParser.Limits()
        limits.maxEventBytes = 3
        let parser = try EventStreamParser(limits: limits)
        #expect(try parser.feed("data: abc\n\n".utf8).count == 1)
        for piece in ["data: abcd\n", "\n"] {
            #expect(throws: RealtimeError.self) { try parser.feed(piece.utf8) }
        }
        parser.finish()
        #expect(try parser.feed("data: abc\n\n".utf8).count == 1)
        limits.maxLineBytes = -1
        #expect(throws: RealtimeError.self) { try EventStreamParser(limits: limits) }
        #expect(throws: RealtimeError.self) { try EventStreamParser(lastEventID: "a\n") }
    }
}
