import Testing
import Wire

struct SentSecretsTests {
    private let token = "eyJhbGciOi.S3cret/of+this=test"

    private func secrets(_ values: String...) -> SentSecrets {
        var secrets = SentSecrets()
        for value in values { secrets.add(value) }
        return secrets
    }

    private func field(_ name: String, _ value: String) -> HeaderField {
        HeaderField(name: name, value: value)
    }

    @Test func everyPlaceOfAValueIsReplaced() {
        let secrets = secrets(token, "second-one")
        #expect(secrets.redacted("bad \(token)") == "bad …")
        #expect(secrets.redacted("\(token)\(token) second-one.") == "…… ….")
        #expect(secrets.redacted("") == "" && secrets.redacted("fine") == "fine")
        #expect(SentSecrets().redacted(token) == token)
        let bytes = Array("x \(token) y".utf8)
        #expect(secrets.redacted(bytes) == Array("x … y".utf8))
    }

    @Test func theEscapesOfJSONHideNothing() throws {
        let secrets = secrets(token)
        let slashes = token.split(separator: "/").joined(separator: #"\/"#)
        #expect(secrets.redacted(#"{"a":"\#(slashes)","b":1}"#) == #"{"a":"…","b":1}"#)
        let units = token.utf8.map { #"\u00"# + String($0, radix: 16) }.joined()
        #expect(secrets.redacted(#"{"a":"\#(units)"}"#) == #"{"a":"…"}"#)
        // JSON inside a string.
        let nested = token.split(separator: "/").joined(separator: #"\\\/"#)
        #expect(secrets.redacted(#""{\"a\":\"\#(nested)\"}""#) == #""{\"a\":\"…\"}""#)
        let shown = secrets.redacted(#"{"a":"\t\#(units)\n"}"#)
        #expect(try JSONValue(parsing: Array(shown.utf8))["a"] == .string("\t…\n"))
    }

    @Test func aFormHidesNothing() {
        #expect(secrets(token).redacted("token=\(formEncoded(token))&x=y") == "token=…&x=y")
    }

    @Test func theBeginningOfAValueThatWasCutIsReplaced() {
        let secrets = secrets(token)
        #expect(secrets.redacted("bad \(token.prefix(8))") == "bad …")
        #expect(secrets.redacted("bad \"\(token.prefix(8))…\"") == "bad \"……\"")
        #expect(secrets.redacted("bad \(token.prefix(16))?") == "bad …?")
        let short = "bad \(token.prefix(15))?"
        #expect(secrets.redacted(short) == short)
        #expect(secrets.redacted("bad \(token.prefix(5))") == "bad \(token.prefix(5))")
    }

    @Test func theLongestOfSeveralValuesIsReplaced() {
        let secrets = secrets("abcdefgh", "abcdefghijkl", "abcdefghij")
        #expect(secrets.redacted("abcdefghijkl abcdefghi.") == "… …i.")
    }

    @Test func shortValuesAreNotLookedFor() {
        #expect(secrets("short", "").isEmpty)
        #expect(secrets("short1").redacted("short1") == "…")
    }

    @Test func theLatestValuesAreKept() {
        var secrets = SentSecrets()
        for number in 0...SentSecrets.mostValues { secrets.add("value-\(1000 + number)") }
        #expect(secrets.redacted("value-1000, value-1001") == "value-1000, …")
        // Adding one again makes it the latest.
        secrets.add("value-1001")
        secrets.add("another")
        #expect(secrets.redacted("value-1001, value-1002") == "…, value-1002")
    }

    @Test func theCredentialsOfHeadersAreKnown() throws {
        let basic = try HeaderField.basicAuthorization(user: "ada", password: "lovelace")
        let url = try HTTPURL(parsing: "http://u:p%40ssword@h/", as: .http)
        let secrets = SentSecrets(
            [
                field("Authorization", basic), field("Cookie", "a=biscuit-1; b=biscuit-2"),
                field("X-API-Key", "the key"), field("Accept", "text/html"),
                field("Proxy-Authorization", "Bearer proxy-token"),
            ], url)
        #expect(secrets.redacted(basic) == "Basic …")
        let all = "lovelace biscuit-1 biscuit-2 the key p@ssword proxy-token"
        #expect(secrets.redacted(all) == "… … … … … …")
        #expect(secrets.redacted("ada wants text/html of h") == "ada wants text/html of h")
    }

    @Test func theCredentialsOfAQueryAreKnown() throws {
        let query = "room=the-kitchen&access%5Ftoken=a/b%3dc-1234&api-key=second+key&auth"
        let url = try HTTPURL(parsing: "wss://h/p?\(query)", as: .webSocket)
        let secrets = SentSecrets([], url)
        #expect(secrets.redacted("a/b%3dc-1234 a/b=c-1234 a%2Fb%3Dc-1234") == "… … …")
        #expect(secrets.redacted("second+key, second key") == "…, …")
        #expect(secrets.redacted("room=the-kitchen&auth") == "room=the-kitchen&auth")
        let other = try HTTPURL(parsing: "ws://h/token=x-value", as: .webSocket)
        #expect(SentSecrets([], other).isEmpty)
    }

    @Test func anErrorAndItsResponseAreRedacted() {
        let head = ResponseHead(
            status: 401, reason: "bad \(token)", fields: [field("X-Echo", token)])
        let response = HTTPResponse(head, body: Array("see \(token)".utf8))
        let error = secrets(token).redacted(
            RealtimeError(.httpStatus, "401 bad \(token)", response: response, systemError: 7))
        #expect(error.message == "401 bad …" && error.systemError == 7)
        #expect(error.code == .httpStatus && error.response?.status == 401)
        #expect(error.response?.reason == "bad …" && error.response?.header("x-echo") == "…")
        #expect(error.response?.body == Array("see …".utf8))
    }

    /// Texts that come close to a value again and again, and long runs of backslashes.
    @Test func hostileTextsAreLinear() {
        let value = String(repeating: "a", count: 1000) + "b"
        let secrets = secrets(value, "aaaaaaac", "aaaaaaad")
        let run = String(repeating: "a", count: 100_000)
        #expect(!secrets.redacted(run).contains("aaaaaaaaaaaaaaaa"))
        let slashes = String(repeating: #"\"#, count: 100_000)
        #expect(secrets.redacted(slashes) == slashes)
    }

    @Test func aMeteorErrorIsRedactedAsAWhole() throws {
        let text =
            #"{"error":"bad \#(token)","reason":"\#(token)","details":{"a":["\#(token)",1]}}"#
        var document = JSONDocument()
        let error = try Array(text.utf8).withUnsafeBytes { bytes throws(RealtimeError) in
            try document.read(bytes) { DDPError($0) }
        }
        let shown = error.redacted(by: secrets(token))
        #expect(shown.code == "bad …" && shown.reason == "…" && shown.kind == .server)
        #expect(!shown.source.contains(token))
        #expect(shown.details?.text == #"{"a":["…",1]}"#)
        #expect(error.redacted(by: secrets("another one")) == error)
    }
}
