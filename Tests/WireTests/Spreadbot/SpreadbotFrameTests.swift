import Testing
import Wire

/// B6: frames of Nchan's WebSocket subprotocol.
@Suite struct SpreadbotFrameTests {
    private struct Read: Equatable {
        var id: String?
        var event: String?
        var type: String?
        var data: String
    }

    private func read(_ frame: [UInt8]) -> Read? {
        frame.withUnsafeBytes { bytes in
            guard let frame = SpreadbotFrame(parsing: bytes) else { return nil }
            func text(_ part: UnsafeRawBufferPointer?) -> String? {
                part.map { String(decoding: $0, as: UTF8.self) }
            }
            return Read(
                id: text(frame.id), event: text(frame.event), type: text(frame.contentType),
                data: String(decoding: frame.data, as: UTF8.self))
        }
    }

    private func read(_ frame: String) -> Read? { read(Array(frame.utf8)) }

    @Test func headersABlankLineAndTheMessage() {
        #expect(
            read("id: 1603:0\ncontent-type: text/plain\nevent: news\n\nhello")
                == Read(id: "1603:0", event: "news", type: "text/plain", data: "hello"))
        #expect(read("id: 1\n\n") == Read(id: "1", data: ""))
        #expect(read("\n") == Read(data: ""))
        #expect(read("\nhello") == Read(data: "hello"))
    }

    @Test func theMessageMayBeAnything() {
        #expect(read("id: 1\n\n\n\nid: 2\n\nx")?.data == "\n\nid: 2\n\nx")
        let binary = Array("id: 1\n\n".utf8) + [0, 255, 10, 10, 0]
        binary.withUnsafeBytes { bytes in
            #expect(SpreadbotFrame(parsing: bytes).map { Array($0.data) } == [0, 255, 10, 10, 0])
        }
    }

    @Test func oneBlankAfterTheColonIsRemoved() {
        #expect(read("id:1\n\n")?.id == "1")
        #expect(read("id:  1\n\n")?.id == " 1")
        #expect(read("event: \n\n")?.event == "")
    }

    @Test func unknownHeadersAreSkippedAndTheLastOfANameCounts() {
        #expect(read("x-y: z\nid: 1\nid: 2\n\nd") == Read(id: "2", data: "d"))
        #expect(read("ID: 1\n\nd")?.id == nil)
    }

    @Test(arguments: [
        "", "hello", "id: 1", "id: 1\n", "no colon\n\nx", ": 1\n\nx", "id: 1\nbad\n\nx",
        "{\"data\":1}",
    ]) func otherTextsAreNotFrames(text: String) {
        #expect(read(text) == nil)
    }

    @Test func anIDThatNoHeaderCanHoldIsIgnored() {
        for id in ["a\rb", "\u{1B}[0m", "a\0", "\u{7F}", "", String(repeating: "x", count: 4097)] {
            #expect(read("id: \(id)\n\nd") == Read(data: "d"))
        }
        #expect(read(Array("id: ".utf8) + [0xFF, 0xFE] + Array("\n\nd".utf8)) == Read(data: "d"))
        #expect(read("id: 1\nid: a\rb\n\nd")?.id == nil)
        #expect(read("id: é\n\nd")?.id == "é")
    }

    @Test func everyPrefixIsReadWithoutHarm() {
        let frame = Array("id: 1\ncontent-type: a/b\nevent: e\n\ndata".utf8)
        for count in 0...frame.count {
            let isWhole = count >= frame.count - 4
            #expect((read(Array(frame.prefix(count))) != nil) == isWhole)
        }
    }
}
