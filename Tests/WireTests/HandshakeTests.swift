import Testing

@testable import Wire

private func field(_ name: String, _ value: String) -> HeaderField {
    HeaderField(name: name, value: value)
}

/// The nonce of RFC 6455 §1.3.
private let nonce = Array("the sample nonce".utf8)
private let nonceKey = "dGhlIHNhbXBsZSBub25jZQ=="
private let upgrade = field("Upgrade", "websocket")
private let connection = field("Connection", "Upgrade")
private let accept = field("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")

private func handshake(
    _ url: String = "ws://server.example.com/chat", subprotocols: [String] = [],
    fields: [HeaderField] = [], deflate: DeflateOffer? = nil
) throws -> ClientHandshake {
    ClientHandshake(
        url: try HTTPURL(parsing: url, as: .webSocket), nonce: nonce, subprotocols: subprotocols,
        fields: fields, deflate: deflate)
}

private func request(of handshake: ClientHandshake) -> [Substring] {
    String(decoding: handshake.request, as: UTF8.self)
        .split(separator: "\r\n", omittingEmptySubsequences: false)
}

@Suite struct HandshakeRequestTests {
    @Test func theWholeRequest() throws {
        var offer = DeflateOffer()
        offer.clientNoContextTakeover = true
        let handshake = try handshake(
            "wss://server.example.com:8443/chat?room=1", subprotocols: ["chat", "superchat"],
            fields: [field("Origin", "http://example.com"), field("X-Name", "é")], deflate: offer)
        #expect(
            String(decoding: handshake.request, as: UTF8.self) == """
                GET /chat?room=1 HTTP/1.1\r
                Host: server.example.com:8443\r
                Upgrade: websocket\r
                Connection: Upgrade\r
                Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
                Sec-WebSocket-Version: 13\r
                Sec-WebSocket-Protocol: chat, superchat\r
                Sec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover; \
                client_max_window_bits\r
                User-Agent: librealtime/\(LibraryVersion.text)\r
                Origin: http://example.com\r
                X-Name: é\r
                \r

                """)
    }

    @Test func onlyRequestedFeaturesAreOffered() throws {
        let lines = request(of: try handshake())
        #expect(lines.first == "GET /chat HTTP/1.1")
        #expect(!lines.contains { $0.hasPrefix("Sec-WebSocket-Protocol") })
        #expect(!lines.contains { $0.hasPrefix("Sec-WebSocket-Extensions") })
        #expect(!lines.contains { $0.hasPrefix("Authorization") })
    }

    @Test(arguments: [
        ("ws://Aladdin:open%20sesame@h/", "QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), ("ws://a@h/", "YTo="),
        ("ws://:b@h/", "OmI="), ("ws://%C3%A9:1@h/", "w6k6MQ=="),
    ])
    func userinfoBecomesBasicAuthorization(url: String, credentials: String) throws {
        let lines = request(of: try handshake(url))
        #expect(lines.contains("Authorization: Basic \(credentials)"))
        let own = [field("authorization", "Bearer t"), field("USER-AGENT", "mine")]
        let overridden = request(of: try handshake(url, fields: own))
        #expect(!overridden.contains { $0.contains("Basic") || $0.contains("librealtime") })
        #expect(overridden.contains("authorization: Bearer t"))
        #expect(overridden.contains("USER-AGENT: mine"))
    }
}

@Suite struct HandshakeVerifyTests {
    private func outcome(
        _ fields: [HeaderField], subprotocols: [String] = ["chat", "superchat"],
        deflate: DeflateOffer? = DeflateOffer(), status: Int = 101, minorVersion: Int = 1
    ) -> Result<ClientHandshake.Outcome, RealtimeError> {
        Result { () throws(RealtimeError) in
            let handshake = ClientHandshake(
                url: try HTTPURL(parsing: "ws://server.example.com/chat", as: .webSocket),
                nonce: nonce,
                subprotocols: subprotocols, fields: [], deflate: deflate)
            return try handshake.verify(
                ResponseHead(
                    status: status, reason: "Why", fields: fields, minorVersion: minorVersion))
        }
    }

    private func error(_ result: Result<ClientHandshake.Outcome, RealtimeError>) -> RealtimeError? {
        if case .failure(let error) = result { error } else { nil }
    }

    @Test(arguments: [
        [upgrade, connection, accept],
        [field("UPGRADE", "WebSocket"), field("connection", "keep-alive, upgrade"), accept],
        [accept, field("Connection", "x"), upgrade, connection, field("Other", "y")],
    ])
    func aPlainUpgradeIsAccepted(fields: [HeaderField]) {
        let plain = ClientHandshake.Outcome(subprotocol: "", extensions: "", deflate: nil)
        #expect(outcome(fields) == .success(plain))
    }

    @Test(arguments: [
        ([connection, accept], "Upgrade: websocket"),
        ([field("Upgrade", "h2c"), connection, accept], "Upgrade: websocket"),
        ([upgrade, accept], "Connection: Upgrade"),
        ([upgrade, field("Connection", "keep-alive"), accept], "Connection: Upgrade"),
        ([upgrade, connection], "without Sec-WebSocket-Accept"),
        ([upgrade, connection, field("Sec-WebSocket-Accept", "")], "does not match"),
        ([upgrade, connection, field("Sec-WebSocket-Accept", nonceKey)], "does not match"),
        (
            [upgrade, connection, field("Sec-WebSocket-Accept", accept.value.lowercased())],
            "does not match"
        ),
        ([upgrade, connection, accept, accept], "does not match"),
    ])
    func aBrokenUpgradeFails(fields: [HeaderField], sentence: String) {
        let error = error(outcome(fields))
        #expect(error?.code == .handshake)
        #expect(error?.message.contains("server.example.com:80 answered") == true)
        #expect(error?.message.contains(sentence) == true)
    }

    @Test func anHTTP10AnswerFails() {
        let error = error(outcome([upgrade, connection, accept], minorVersion: 0))
        #expect(error?.code == .handshake)
        #expect(error?.message.contains("HTTP/1.0") == true)
    }

    @Test(arguments: [200, 301, 401, 404, 426, 503])
    func anotherStatusIsNamed(status: Int) {
        let error = error(outcome([upgrade, connection, accept], status: status))
        #expect(error?.code == .httpStatus)
        #expect(error?.message.contains("\(status) \"Why\"") == true)
    }

    @Test func aRedirectNamesItsTargetWithoutCredentials() {
        let fields = [field("Location", "https://u:secret@h2/x?token=t")]
        let message = error(outcome(fields, status: 302))?.message
        #expect(message?.contains("\"https://***@h2/x?***\"") == true)
    }

    @Test(
        arguments: [
            (["chat"], "chat"), (["superchat"], "superchat"), ([""], ""), (["", "chat"], "chat"),
            ([], ""),
        ] as [([String], String)])
    func anOfferedSubprotocolIsChosen(values: [String], chosen: String) throws {
        let fields = values.map { field("sec-websocket-protocol", $0) }
        let result = outcome([upgrade, connection, accept] + fields)
        #expect(try result.get().subprotocol == chosen)
    }

    @Test(arguments: [
        (["Chat"], "not offered"), (["chat, superchat"], "not offered"), (["x"], "not offered"),
        (["chat", "superchat"], "more than one"), (["chat", "chat"], "more than one"),
    ])
    func anotherSubprotocolFails(values: [String], sentence: String) {
        let fields = values.map { field("Sec-WebSocket-Protocol", $0) }
        let error = error(outcome([upgrade, connection, accept] + fields))
        #expect(error?.code == .handshake)
        #expect(error?.message.contains(sentence) == true)
    }

    @Test func aSubprotocolWithoutAnOfferFails() {
        let fields = [upgrade, connection, accept, field("Sec-WebSocket-Protocol", "chat")]
        #expect(error(outcome(fields, subprotocols: []))?.code == .handshake)
    }

    @Test func anAgreedExtensionIsReported() throws {
        let fields = [
            upgrade, connection, accept,
            field("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits=8"),
        ]
        let result = try outcome(fields).get()
        #expect(result.extensions == "permessage-deflate; client_max_window_bits=8")
        #expect(result.deflate == DeflateParameters(clientMaxWindowBits: 8))
        #expect(result.deflate?.canCompress == false)
        #expect(error(outcome(fields, deflate: nil))?.code == .handshake)
    }
}

@Suite struct HandshakeValidateTests {
    private func headerError(_ name: String, _ value: String) -> RealtimeError? {
        #expect(throws: RealtimeError.self) {
            try ClientHandshake.validate(fieldName: name, value: value)
        }
    }

    @Test(arguments: [
        ("Origin", "http://h"), ("authorization", "Bearer x"), ("User-Agent", ""),
        ("X", "a\tb é ☕"),
        ("Sec-WebSocket", "x"), ("Cookie", "a=b; c=\"d\""), ("!#$%&'*+-.^_`|~09aZ", "x"),
    ])
    func ordinaryHeadersPass(name: String, value: String) throws {
        try ClientHandshake.validate(fieldName: name, value: value)
    }

    @Test(arguments: [
        "", " ", "a b", "a:", "a\r\nb", "a\0", "é", "a(b", "\"a\"", "a,b", "{", "\u{7F}", "a\t",
    ])
    func namesThatAreNotTokensFail(name: String) {
        #expect(headerError(name, "v")?.code == .invalidHeader)
    }

    @Test(arguments: [
        "upgrade", "CONNECTION", "Sec-WebSocket-Key", "sec-websocket-anything",
        "Sec-WebSocket-", "Content-Length", "transfer-encoding",
    ])
    func theHandshakesOwnHeadersFail(name: String) {
        let error = headerError(name, "v")
        #expect(error?.code == .invalidHeader)
        #expect(error?.message.contains(name) == true)
    }

    @Test(arguments: ["a.test", "a.test:81", "[::1]", "[::1]:81", "xn--a", "a_b", ""])
    func hostMayBeSet(value: String) throws {
        try ClientHandshake.validate(fieldName: "Host", value: value)
    }

    @Test(arguments: ["a b", "a/b", "a,b", "a@b", "é", "a\r\nX: y", "http://a", "a?b", "a#"])
    func hostMustBeAHost(value: String) {
        #expect(headerError("Host", value)?.code == .invalidHeader)
    }

    @Test func aHostThatIsSetIsSentOnceAndFirst() throws {
        let handshake = ClientHandshake(
            url: try HTTPURL(parsing: "ws://192.0.2.1:81/", as: .webSocket),
            nonce: [UInt8](repeating: 0, count: 16), subprotocols: [],
            fields: [
                HeaderField(name: "X", value: "1"), HeaderField(name: "host", value: "a.test"),
            ], deflate: nil)
        let lines = String(decoding: handshake.request, as: UTF8.self).split(separator: "\r\n")
        #expect(lines[1] == "Host: a.test")
        #expect(lines.filter { $0.lowercased().hasPrefix("host:") }.count == 1)
        #expect(lines.contains("X: 1"))
    }

    @Test(arguments: ["a\rb", "a\nb", "a\r\nX: y", "a\0b", "\u{1}", "\u{7F}"])
    func valuesWithControlCharactersFailAndAreNotShown(value: String) {
        let error = headerError("X-Secret", "hidden" + value)
        #expect(error?.code == .invalidHeader)
        #expect(error?.message.contains("X-Secret") == true)
        #expect(error?.message.contains("hidden") == false)
    }

    @Test(arguments: ["chat", "ws+meta.nchan", "v1.json", "a|b"])
    func subprotocolsThatAreTokensPass(name: String) throws {
        try ClientHandshake.validate(subprotocol: name)
    }

    @Test(arguments: ["", " ", "a b", "a,b", "a\r\nb", "a/b", "é", "a\0"])
    func otherSubprotocolsFail(name: String) {
        let error = #expect(throws: RealtimeError.self) {
            try ClientHandshake.validate(subprotocol: name)
        }
        #expect(error?.code == .invalidSubprotocol)
    }
}

@Suite struct DigestTests {
    @Test(arguments: [
        ("", "", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        ("f", "Zg==", "4a0a19218e082a343a1b17e5333409af9d98f0f5"),
        ("fo", "Zm8=", "19082866d46a5a57bfeffe585d8362c149676c90"),
        ("foo", "Zm9v", "0beec7b5ea3f0fdbc95d0dd47f3c5bc275da8a33"),
        ("abc", "YWJj", "a9993e364706816aba3e25717850c26c9cd0d89d"),
    ])
    func base64AndSHA1(text: String, encoded: String, digest: String) throws {
        let bytes = Array(text.utf8)
        #expect(base64(bytes) == encoded)
        let hex = try #require(sha1(bytes)).map { byte in
            let digits = String(byte, radix: 16)
            return digits.count == 1 ? "0" + digits : digits
        }
        #expect(hex.joined() == digest)
    }
}
