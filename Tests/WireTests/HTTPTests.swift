import Testing

@testable import Wire

/// The result of reading a response: the head and the bytes after it, or the error.
private enum Reading: Equatable {
    case head(ResponseHead, rest: String)
    case needMoreBytes
    case failed(RealtimeError)
}

/// Feeds the bytes in pieces of at most `piece`.
private func read(_ bytes: [UInt8], piece: Int, limit: Int = 4096) -> Reading {
    var reader = ResponseHeadReader(limit: limit)
    var start = 0
    while start < bytes.count {
        let end = min(start + piece, bytes.count)
        let step = bytes[start..<end].withUnsafeBytes { chunk in
            Result { () throws(RealtimeError) in try reader.read(chunk) }
        }
        switch step {
        case .success(.head(let head, let used)):
            let rest = bytes[(start + used)...]
            return .head(head, rest: String(decoding: rest, as: UTF8.self))
        case .success(.needMoreBytes): break
        case .failure(let error): return .failed(error)
        }
        start = end
    }
    return .needMoreBytes
}

/// Reads it whole, byte by byte, and in threes; the results must agree.
private func readAllWays(_ bytes: [UInt8], limit: Int = 4096) -> Reading {
    let whole = read(bytes, piece: max(bytes.count, 1), limit: limit)
    #expect(read(bytes, piece: 1, limit: limit) == whole)
    #expect(read(bytes, piece: 3, limit: limit) == whole)
    return whole
}

private func readAllWays(_ text: String, limit: Int = 4096) -> Reading {
    readAllWays(Array(text.utf8), limit: limit)
}

private func field(_ name: String, _ value: String) -> HeaderField {
    HeaderField(name: name, value: value)
}

@Suite struct ResponseHeadReaderTests {
    @Test func readsAnUpgradeAndLeavesTheFrames() {
        let text =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nA:\t b c \t\r\n\r\nframes"
        let head = ResponseHead(
            status: 101, reason: "Switching Protocols",
            fields: [field("Upgrade", "websocket"), field("A", "b c")])
        #expect(readAllWays(text) == .head(head, rest: "frames"))
    }

    @Test(arguments: [
        ("HTTP/1.1 200 \r\n\r\n", ResponseHead(status: 200)),
        ("HTTP/1.1 200\r\n\r\n", ResponseHead(status: 200)),
        (
            "HTTP/1.0 404 Not Found\nA:b\n\n",
            ResponseHead(
                status: 404, reason: "Not Found", fields: [field("A", "b")], minorVersion: 0)
        ),
        (
            "HTTP/1.1 999 x\r\nEmpty:\r\nBlank:  \t \r\n\r\n",
            ResponseHead(
                status: 999, reason: "x", fields: [field("Empty", ""), field("Blank", "")])
        ),
        (
            "HTTP/1.1 503 caf\u{e9} ☕\r\nA: x:y, \"z\"\r\n\r\n",
            ResponseHead(
                status: 503, reason: "caf\u{e9} ☕", fields: [field("A", "x:y, \"z\"")])
        ),
    ])
    func readsHeads(text: String, head: ResponseHead) {
        #expect(readAllWays(text) == .head(head, rest: ""))
    }

    /// They are read as ISO-8859-1.
    @Test func bytesThatAreNotUTF8AreKept() throws {
        let text = "HTTP/1.1 101 caf\u{E9}\r\nA: x\u{FF}y\r\nB: é\r\n\r\n"
        let bytes = text.unicodeScalars.map { UInt8($0.value) }
        guard case .head(let head, rest: "") = readAllWays(bytes) else {
            Issue.record("no head")
            return
        }
        #expect(head.reason == "caf\u{E9}" && head.values("A") == ["x\u{FF}y"])
        #expect(head.reasonText.bytes == Array("caf".utf8) + [0xE9])
        #expect(head.contents("a").map(\.bytes) == [[0x78, 0xFF, 0x79]])
        let response = HTTPResponse(head, body: [])
        #expect(response.reason == "caf\u{E9}" && response.header("a") == "x\u{FF}y")
        #expect(response.headers[0].content.bytes == [0x78, 0xFF, 0x79])
        // Valid UTF-8 is read as such.
        let valid = ResponseHead(status: 200, fields: [field("A", "é")])
        #expect(valid.contents("A").map(\.bytes) == [[0xC3, 0xA9]])
    }

    @Test(arguments: ["100", "102", "103", "199"])
    func interimResponsesAreSkipped(status: String) {
        let interim = "HTTP/1.1 \(status) Wait\r\nLink: </x>\r\n\r\n"
        let text = String(repeating: interim, count: 8) + "HTTP/1.1 101 Go\r\n\r\nrest"
        let expected = Reading.head(ResponseHead(status: 101, reason: "Go"), rest: "rest")
        #expect(readAllWays(text) == expected)
        guard case .failed(let error) = readAllWays(interim + text) else {
            Issue.record("a ninth interim response was accepted")
            return
        }
        #expect(error.code == .handshake)
        #expect(error.message.contains("8 interim"))
    }

    @Test func theLimitAppliesToEachHead() {
        let head = "HTTP/1.1 101 Go\r\nA: b\r\n\r\n"
        let interim = "HTTP/1.1 100 Go\r\nA: b\r\n\r\n"
        let expected = Reading.head(
            ResponseHead(status: 101, reason: "Go", fields: [field("A", "b")]), rest: "frames")
        let size = head.utf8.count
        #expect(readAllWays(interim + head + "frames", limit: size) == expected)
        guard case .failed(let error) = readAllWays(head + "frames", limit: size - 1) else {
            Issue.record("a head above the limit was accepted")
            return
        }
        #expect(error.code == .tooLarge)
        #expect(error.message.contains("\(size - 1) bytes"))
    }

    @Test func aLineWithoutEndFailsAtTheLimit() {
        let text = "HTTP/1.1 101 " + String(repeating: "x", count: 5000)
        guard case .failed(let error) = readAllWays(text) else {
            Issue.record("an endless line was accepted")
            return
        }
        #expect(error.code == .tooLarge)
    }

    @Test func theNumberOfFieldsIsLimited() {
        let text = "HTTP/1.1 101 \r\n" + String(repeating: "A: b\r\n", count: 128)
        guard case .head(let head, _) = readAllWays(text + "\r\n") else {
            Issue.record("128 fields were refused")
            return
        }
        #expect(head.fields.count == 128)
        guard case .failed(let error) = readAllWays(text + "A: b\r\n\r\n") else {
            Issue.record("129 fields were accepted")
            return
        }
        #expect(error.code == .tooLarge)
        #expect(error.message.contains("128 header fields"))
    }

    @Test(arguments: [
        "", "H", "HTTP/1.1 101 Switching", "HTTP/1.1 101 \r\n", "HTTP/1.1 101 \r\nA: b\r\n\r",
    ])
    func aPartOfAHeadAsksForMore(text: String) {
        #expect(readAllWays(text) == .needMoreBytes)
    }

    @Test(arguments: [
        "HTTP/2 101 \r\n", "HTTP/1.10 101 \r\n", "http/1.1 101 x\r\n", "HTTP/1.1  101 x\r\n",
        "HTTP/1.1 10 xx\r\n", "HTTP/1.1 1010 x\r\n", "HTTP/1.1 001 x\r\n",
        "HTTP/1.1 1a1 x\r\n", "HTTP/1.1\t101 x\r\n", "\r\nHTTP/1.1 101 x\r\n",
        "SSH-2.0-OpenSSH\r\n",
        "HTTP/1.1 101 a\rb\r\n", "HTTP/1.1 101 a\0b\r\n", "ICY 200 OK\r\n",
        "HTTP/1.1 101 \r\nNo colon\r\n", "HTTP/1.1 101 \r\n: v\r\n", "HTTP/1.1 101 \r\nA : v\r\n",
        "HTTP/1.1 101 \r\nA\t: v\r\n", "HTTP/1.1 101 \r\nA(: v\r\n",
        "HTTP/1.1 101 \r\n\u{e9}: v\r\n",
        "HTTP/1.1 101 \r\nA: b\r\n folded\r\n", "HTTP/1.1 101 \r\n A: b\r\n",
        "HTTP/1.1 101 \r\nA: b\rc\r\n", "HTTP/1.1 101 \r\nA: b\0c\r\n",
        "HTTP/1.1 101 \r\nA: b\r\r\n", "HTTP/1.1 101 \r\n\r\r\n",
    ])
    func malformedHeadsFailTheHandshake(text: String) {
        guard case .failed(let error) = readAllWays(text) else {
            Issue.record("accepted or not decided: \(text)")
            return
        }
        #expect(error.code == .handshake)
        #expect(!error.message.unicodeScalars.contains { $0.value < 0x20 })
    }

    @Test func readingAfterTheHeadIsAStateError() throws {
        var reader = ResponseHeadReader(limit: 100)
        let bytes = Array("HTTP/1.1 101 \r\n\r\n".utf8)
        _ = try bytes.withUnsafeBytes { try reader.read($0) }
        #expect(throws: RealtimeError.self) {
            try bytes.withUnsafeBytes { try reader.read($0) }
        }
    }
}

@Suite struct ResponseHeadTests {
    private let head = ResponseHead(
        status: 101,
        fields: [
            field("Connection", "keep-alive ,\tUPGRADE,, "), field("X", "1"),
            field("connection", "close"), field("x", "2"),
        ])

    @Test func namesIgnoreCase() {
        #expect(head.values("x") == ["1", "2"])
        #expect(head.values("X") == ["1", "2"])
        #expect(head.values("Y").isEmpty)
    }

    @Test(arguments: [
        ("upgrade", true), ("Keep-Alive", true), ("close", true), ("grade", false), ("", false),
        ("keep-alive ,\tUPGRADE", false), ("upgrad\u{212A}", false),
    ])
    func tokensMatchInAnyCaseOverAllFields(token: String, found: Bool) {
        #expect(head.hasToken(token, in: "Connection") == found)
    }
}

@Suite struct QuotingTests {
    @Test(arguments: [
        ("plain", "\"plain\""), ("a\r\nb", "\"a\\u{d}\\u{a}b\""), ("\u{1B}[2J", "\"\\u{1b}[2J\""),
        ("\u{202E}x", "\"\\u{202e}x\""), ("12345678901", "\"1234567890…\""), ("", "\"\""),
        ("é☕", "\"é☕\""),
    ])
    func textFromOutsideCannotCommandATerminal(text: String, quoted: String) {
        #expect(text.quoted(upTo: 10) == quoted)
    }

    @Test func messagesHaveNoControlCharacters() {
        let hostile = "a\u{1B}[2J\r\nb\u{7F}\u{9B}é👩‍👧\u{202E}\u{2028}\u{FEFF}"
        let error = RealtimeError(.tls, "the name '\(hostile)' is wrong")
        let shown = "a\\u{1b}[2J\\u{d}\\u{a}b\\u{7f}\\u{9b}é👩‍👧\\u{202e}\\u{2028}\\u{feff}"
        let message = "the name '\(shown)' is wrong"
        #expect(error.message == message)
        #expect("\(error)".hasPrefix(message))
    }
}
