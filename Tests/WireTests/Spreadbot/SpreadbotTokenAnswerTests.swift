import Testing
import Wire

/// B4: the responses of the token server.
@Suite struct SpreadbotTokenAnswerTests {
    private func parse(_ text: String) throws -> SpreadbotTokenAnswer {
        try SpreadbotTokenAnswer(parsing: Array(text.utf8))
    }

    @Test func allMembers() throws {
        let answer = try parse(
            #"{"access_token":"a.b-c","token_type":"Bearer","expires_in":3600,"refresh_token":"r"}"#
        )
        #expect(answer.access == "a.b-c" && answer.refresh == "r")
        #expect(answer.lifetime == .seconds(3600))
        let least = try parse(#"{"access_token":"a"}"#)
        #expect(least.access == "a" && least.refresh == nil && least.lifetime == nil)
    }

    @Test(arguments: ["bearer", "Bearer", "BEARER", "bEaReR"]) func theTypeIgnoresCase(
        type: String
    ) throws {
        #expect(try parse("{\"access_token\":\"a\",\"token_type\":\"\(type)\"}").access == "a")
    }

    @Test(arguments: [
        "", "x", "[]", "null", "{}", #"{"access_token":""}"#, #"{"access_token":1}"#,
        #"{"access_token":null}"#, #"{"access_token":"a","token_type":"mac"}"#,
        #"{"access_token":"a","token_type":1}"#, #"{"access_token":"a\r\nX: y"}"#,
        #"{"access_token":"a\u0000"}"#, #"{"access_token":"a"#, #"[{"access_token":"a"}]"#,
        #"{"access_token":"a"}x"#, #"{"access_token":"a","refresh_token":"r\u0000"}"#,
        #"{"access_token":"a","refresh_token":"\u001Fr"}"#,
    ]) func answersWithoutAUsableTokenAreRefused(text: String) {
        #expect {
            try parse(text)
        } throws: {
            ($0 as? RealtimeError)?.code == .auth
        }
    }

    @Test func anErrorDoesNotRepeatTheToken() {
        do {
            _ = try parse(#"{"access_token":"secret\u0000"}"#)
            Issue.record("it was accepted")
        } catch {
            #expect(!"\(error)".contains("secret"))
        }
    }

    @Test(
        arguments: [
            ("0", nil), ("-1", nil), ("0.9", nil), ("\"60\"", nil), ("null", nil), ("1e400", nil),
            ("1e300", nil), ("1", 1), ("59.9", 59), ("9223372036854775807", nil),
            ("1e15", 10 * 365 * 86_400),
        ] as [(String, Int?)]) func aLifetimeIsBoundedAndPositive(text: String, seconds: Int?)
        throws
    {
        let answer = try? parse("{\"access_token\":\"a\",\"expires_in\":\(text)}")
        #expect(answer?.lifetime == seconds.map { .seconds($0) })
    }

    @Test func anEmptyRefreshTokenIsNone() throws {
        for token in ["\"\"", "null", "1", "[]"] {
            let answer = try parse("{\"access_token\":\"a\",\"refresh_token\":\(token)}")
            #expect(answer.refresh == nil)
        }
    }

    @Test func anErrorNamesTheReason() {
        func code(_ text: String) -> String? {
            SpreadbotTokenAnswer.errorCode(Array(text.utf8))
        }
        #expect(code(#"{"error":"invalid_grant"}"#)?.contains("invalid_grant") == true)
        let told = code(#"{"error":"invalid_grant","error_description":"it is spent"}"#)
        #expect(told?.contains("it is spent") == true)
        for text in ["", "x", "[]", "{}", #"{"error":1}"#] { #expect(code(text) == nil) }
        let long = String(repeating: "x", count: 10_000)
        let bounded = code("{\"error\":\"\(long)\",\"error_description\":\"\(long)\\n\"}")
        #expect(bounded.map { $0.utf8.count < 300 && !$0.contains("\n") } == true)
    }
}
