import Testing

@testable import Wire

@Suite struct MediaTypeTests {
    /// C3, and the web platform's format-mime-trailing-semicolon and format-utf-8.
    @Test(arguments: [
        "text/event-stream", "Text/Event-Stream", "text/event-stream;", "text/event-stream ;",
        "text/event-stream; charset=windows-1252", " text/event-stream\t;;charset",
        "TEXT/EVENT-STREAM;=;",
        "text/event-stream;\"", "text/event-stream; charset=\"a;b",
    ])
    func parametersDoNotMatter(text: String) {
        #expect(MediaType(text)?.matches("text/event-stream") == true)
    }

    /// format-mime-bogus, format-mime-valid-bogus.
    @Test(arguments: [
        "", "x", "x bogus", "text/x-bogus", "text/event-streamx", "text/event-stream x", "text/",
        "/event-stream", "text /event-stream", "text/ event-stream", "text/event/stream", ";",
        "text/event-stream, text/plain", "xtext/event-stream", "text/event\u{2D}stream\u{301}",
    ])
    func otherTypesAreOthers(text: String) {
        #expect(MediaType(text)?.matches("text/event-stream") != true)
    }

    /// Fetch, "extract a MIME type", with its examples.
    @Test func theLastValidOneCounts() {
        func type(_ values: String...) -> MediaType? { MediaType(contentType: values) }
        #expect(type("text/plain;charset=gbk, text/html")?.essence == "text/html")
        #expect(type("text/plain;charset=gbk, text/html")?.value("charset") == nil)
        #expect(
            type("text/html;charset=gbk;a=b, text/html;x=y")?.parameters
                == [parameter("x", "y"), parameter("charset", "gbk")])
        #expect(type("text/html;charset=gbk;a=b", "text/html;x=y")?.value("charset") == "gbk")
        #expect(type("text/html;charset=gbk", "x/x", "text/html;x=y")?.value("charset") == nil)
        #expect(type("text/html", "cannot-parse")?.essence == "text/html")
        #expect(type("text/html", "*/*")?.essence == "text/html")
        #expect(type("text/html", "")?.essence == "text/html")
        #expect(type("a/b;x=\"1,\\\"2\",c/d")?.essence == "c/d")
        #expect(type("a/b;x=\"1,c/d")?.essence == "a/b")
        #expect(type("", "nothing") == nil && MediaType(contentType: []) == nil)
    }

    private func parameters(_ text: String) -> [MediaType.Parameter]? {
        MediaType(text)?.parameters
    }

    private func parameter(_ name: String, _ value: String) -> MediaType.Parameter {
        MediaType.Parameter(name: name, value: value)
    }

    @Test func parametersAreRead() {
        #expect(
            parameters("multipart/mixed; boundary=a/b.c'd:e=f?g ; Charset=\"UTF\\-8\" x")
                == [parameter("boundary", "a/b.c'd:e=f?g"), parameter("charset", "UTF-8")])
        #expect(parameters("a/b;x=\"1;2\";y=3") == [parameter("x", "1;2"), parameter("y", "3")])
        #expect(parameters("a/b;x=1;X=2") == [parameter("x", "1")])
        #expect(parameters("a/b;x=;y;=z;x y=1;v=\"\"") == [parameter("v", "")])
        #expect(parameters("a/b;x=\"open") == [parameter("x", "open")])
        #expect(parameters("a/b;x=\"end\\") == [parameter("x", "end\\")])
        #expect(MediaType("a/b;Boundary=q")?.value("BOUNDARY") == "q")
    }
}

@Suite struct MultipartTests {
    private func parts(
        _ body: String, boundary: String = "b"
    ) throws(RealtimeError) -> [[String]] {
        guard let type = MediaType("multipart/mixed; boundary=\(boundary)") else { return [] }
        var reader = try Multipart(type)
        var parts: [[String]] = []
        let bytes = Array(body.utf8)
        let result = bytes.withUnsafeBytes { body -> Result<Void, RealtimeError> in
            do throws(RealtimeError) {
                while let part = try reader.next(body) {
                    let content = String(decoding: body[part.content], as: UTF8.self)
                    parts.append([part.contentType, content])
                }
                return .success(())
            } catch {
                return .failure(error)
            }
        }
        try result.get()
        return parts
    }

    @Test func eachPartHasATypeAndBytes() throws {
        #expect(
            try parts("--b\r\nContent-Type: text/plain\r\n\r\none\r\n--b\r\n\r\ntwo\r\n--b--")
                == [["text/plain", "one"], ["", "two"]])
        #expect(try parts("\r\n--b\r\n\r\none\r\n--b--\r\n") == [["", "one"]])
        #expect(
            try parts(
                "preamble\r\n--b \t\r\nX: y\r\ncontent-TYPE:a/b \r\n\r\n1\r\n--b--\r\nepilogue")
                == [["a/b", "1"]])
    }

    @Test func nchansBoundariesAreAccepted() throws {
        let boundary = "yz/jFa7.pU+k"
        #expect(
            try parts("--\(boundary)\r\n\r\nx\r\n--\(boundary)--\r\n", boundary: boundary)
                == [["", "x"]])
    }

    @Test func contentMayResembleADelimiter() throws {
        #expect(
            try parts("--b\r\n\r\nx--b\r\n-b\r\n--\r\n\n--b\r\r\n--b--") == [
                ["", "x--b\r\n-b\r\n--\r\n\n--b\r"]
            ])
    }

    @Test func partsAndBodiesMayBeEmpty() throws {
        #expect(try parts("--b\r\n\r\n\r\n--b\r\n\r\n--b--") == [["", ""], ["", ""]])
        #expect(try parts("--b--") == [])
        #expect(try parts("\r\n--b--\r\n") == [])
    }

    @Test(arguments: [
        "", "b", "--", "--b", "--b\r\n", "--b\r\n\r\none", "--b\r\n\r\none\r\n--b", "--bx\r\n\r\n",
        "--b\r\n\r\none\r\n--b-", "--b\r\n\r\none\r\n--b\r\n", "--b\n\none\n--b--",
        "--b\r\nA: b\n\r\n\r\none", "\n--b--",
    ])
    func aBodyThatIsCutIsRefused(body: String) {
        #expect(throws: RealtimeError.self) { try parts(body) }
    }

    @Test func headersOfAPartAreLimited() {
        let long = String(repeating: "x", count: 20_000)
        #expect(throws: RealtimeError.self) { try parts("--b\r\nA: \(long)\r\n\r\n\r\n--b--") }
    }

    @Test(arguments: [
        "text/plain; boundary=b", "multipart/mixed", "multipart/mixed; boundary=\"\"",
        "multipart/mixed; boundary=" + String(repeating: "b", count: 71),
    ])
    func aBoundaryIsNeeded(type: String) throws {
        let type = try #require(MediaType(type))
        #expect(throws: RealtimeError.self) { _ = try Multipart(type) }
    }
}
