import Testing
import Wire

struct SockJSFrameTests {
    private func parse(_ text: String) throws -> SockJSFrame {
        try Array(text.utf8).withUnsafeBytes { try SockJSFrame(parsing: $0) }
    }

    private func messages(_ texts: String...) -> SockJSFrame {
        .messages(texts.map { Array($0.utf8) })
    }

    @Test func framesAreRead() throws {
        #expect(try parse("o\n") == .open)
        #expect(try parse("o") == .open)
        #expect(try parse("h\n") == .heartbeat)
        #expect(try parse("a[]\n") == messages())
        let two = messages(#"{"msg":"pong"}"#, "x")
        #expect(try parse(#"a["{\"msg\":\"pong\"}","x"]"# + "\n") == two)
        #expect(try parse(#"a["\u200c\ud83d\ude00é"]"#) == messages("\u{200C}😀é"))
        #expect(try parse(#"c[3000,"Go away!"]"#) == .close(code: 3000, reason: "Go away!"))
    }

    @Test(arguments: [
        "", "\n", "x", "oo", "h h", "a", "a[", "a[1]", #"a["x",null]"#, #"a[["x"]]"#, #"a["x"]]"#,
        #"a["x"]["y"]"#, #"a{"x":"y"}"#, "c", "c[]", "c[3000]", #"c["x",3000]"#,
        #"c[3000,"x",1]"#, #"c[3000.5,"x"]"#, #"c[-1,"x"]"#, #"c[65536,"x"]"#, #"c{"3000":"x"}"#,
        #"m"x""#,
    ])
    func anythingElseIsAnError(text: String) {
        let error = #expect(throws: RealtimeError.self) { try parse(text) }
        #expect(error?.code == .protocolViolation)
    }

    @Test func bytesThatAreNotUTF8AreAnError() {
        let bytes = Array("a[\"".utf8) + [0xFF] + Array("\"]".utf8)
        let error = #expect(throws: RealtimeError.self) {
            try bytes.withUnsafeBytes { try SockJSFrame(parsing: $0) }
        }
        #expect(error?.code == .protocolViolation)
    }

    @Test func theNumberOfMessagesIsLimited() throws {
        let fits = "a[" + String(repeating: "\"\",", count: SockJSFrame.messageLimit - 1) + "\"\""
        guard case .messages(let messages) = try parse(fits + "]") else {
            Issue.record("another frame")
            return
        }
        #expect(messages.count == SockJSFrame.messageLimit)
        let error = #expect(throws: RealtimeError.self) { try parse(fits + ",\"\"]") }
        #expect(error?.code == .tooLarge)
    }

    @Test func bodiesAreArraysOfStrings() throws {
        let messages = [Array(#"{"msg":"ping"}"#.utf8), Array("é\n\u{2028}".utf8), []]
        let body = SockJSBody.bytes(of: messages)
        #expect(
            try JSONValue(parsing: body)
                == .array([.string(#"{"msg":"ping"}"#), .string("é\n\u{2028}"), .string("")]))
        #expect(SockJSBody.bytes(of: []) == Array("[]".utf8))
        let frame = try (Array("a".utf8) + body).withUnsafeBytes { try SockJSFrame(parsing: $0) }
        #expect(frame == .messages(messages))
    }

    @Test func aSessionHasThreeDigitsAndEightCharacters() {
        var seen: Set<String> = []
        for random in [0, 0.25, 0.5, 0.123456789, 1.0.nextDown, 1, -1, .nan] {
            let parts = SockJSSessionID(random: random).path.split(separator: "/")
            #expect(parts.map { $0.count } == [3, 8])
            #expect(parts[0].allSatisfy { "0123456789".contains($0) })
            #expect(parts[1].allSatisfy { "abcdefghijklmnopqrstuvwxyz012345".contains($0) })
            seen.insert(SockJSSessionID(random: random).path)
        }
        // 0 stands for what is out of range.
        #expect(seen.count == 5)
    }
}
