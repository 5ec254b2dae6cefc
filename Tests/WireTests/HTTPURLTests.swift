import Testing

@testable import Wire

@Suite struct HTTPURLTests {
    struct Vector: Sendable {
        var text: String
        var connect: String
        var host: String
        var target: String
    }

    @Test(arguments: [
        Vector(
            text: "ws://example.com", connect: "http://example.com:80", host: "example.com",
            target: "/"),
        Vector(
            text: "WSS://example.com/chat?a=b&c", connect: "https://example.com:443",
            host: "example.com", target: "/chat?a=b&c"),
        Vector(
            text: "ws://h:9001/runCase?case=1&agent=x/y", connect: "http://h:9001",
            host: "h:9001", target: "/runCase?case=1&agent=x/y"),
        Vector(text: "wss://h:80/", connect: "https://h:80", host: "h:80", target: "/"),
        Vector(text: "wss://h:443/", connect: "https://h:443", host: "h", target: "/"),
        Vector(text: "ws://h:/x", connect: "http://h:80", host: "h", target: "/x"),
        Vector(text: "ws://h?q", connect: "http://h:80", host: "h", target: "/?q"),
        Vector(text: "ws://h/?", connect: "http://h:80", host: "h", target: "/?"),
        Vector(
            text: "ws://[::1]:8080/x", connect: "http://[::1]:8080", host: "[::1]:8080",
            target: "/x"),
        Vector(
            text: "wss://[2001:db8::1]", connect: "https://[2001:db8::1]:443",
            host: "[2001:db8::1]", target: "/"),
        Vector(
            text: "ws://[fe80::1%25eth0]/", connect: "http://[fe80::1%25eth0]:80",
            host: "[fe80::1]", target: "/"),
        Vector(
            text: "ws://127.0.0.1:65535/a%20b%23", connect: "http://127.0.0.1:65535",
            host: "127.0.0.1:65535", target: "/a%20b%23"),
        Vector(
            text: "ws://h/é?ü=\"|<>\\^`{}", connect: "http://h:80", host: "h",
            target: "/%C3%A9?%C3%BC=%22%7C%3C%3E%5C%5E%60%7B%7D"),
        Vector(
            text: "ws://xn--bcher-kva.example/", connect: "http://xn--bcher-kva.example:80",
            host: "xn--bcher-kva.example", target: "/"),
        Vector(
            text: "ws://bücher.example/", connect: "http://xn--bcher-kva.example:80",
            host: "xn--bcher-kva.example", target: "/"),
        Vector(
            text: "wss://BU\u{308}CHER\u{3002}example:8443/",
            connect: "https://xn--bcher-kva.example:8443", host: "xn--bcher-kva.example:8443",
            target: "/"),
        Vector(
            text: "ws://fa%C3%9F.test/ß", connect: "http://xn--fa-hia.test:80",
            host: "xn--fa-hia.test", target: "/%C3%9F"),
        Vector(
            text: "ws://a_b.c-d./", connect: "http://a_b.c-d.:80", host: "a_b.c-d.", target: "/"),
    ])
    func takesURLsApart(vector: Vector) throws {
        let url = try HTTPURL(parsing: vector.text, as: .webSocket)
        #expect(url.connectURL == vector.connect)
        #expect(url.hostHeader == vector.host)
        #expect(url.target == vector.target)
        #expect(url.isSecure == vector.connect.hasPrefix("https"))
        #expect(vector.connect.hasSuffix("//" + url.displayName))
        #expect(url.user == nil)
        #expect(url.password == nil)
    }

    @Test func partsHaveTheFormThatSocketsNeed() throws {
        let url = try HTTPURL(parsing: "ws://[fe80::1%25lo]:90/", as: .webSocket)
        #expect(url.host == "fe80::1")
        #expect(url.port == 90)
        #expect(url.displayName == "[fe80::1%25lo]:90")
    }

    @Test(
        arguments: [
            ("ws://me:s%20e%2Fc@h/", "me", "s e/c"), ("ws://me@h/", "me", nil),
            ("ws://m%C3%A9:@h/", "mé", ""), ("ws://:pw@h/", "", "pw"),
        ] as [(String, String?, String?)])
    func userinfoIsDecoded(text: String, user: String?, password: String?) throws {
        let url = try HTTPURL(parsing: text, as: .webSocket)
        #expect(url.user == user)
        #expect(url.password == password)
        #expect(url.connectURL == "http://h:80")
    }

    @Test(arguments: [
        "http://h/", "https://h/", "ftp://h/", "wsss://h/", "file:///x", "javascript://h",
    ])
    func otherSchemesAreUnsupported(text: String) {
        let error = #expect(throws: RealtimeError.self) {
            try HTTPURL(parsing: text, as: .webSocket)
        }
        #expect(error?.code == .unsupportedScheme)
        #expect(error?.message.contains("ws or wss") == true)
    }

    @Test(arguments: [
        "", "h", "h/path", "//h/", "ws", "ws:", "ws:h", "ws:/h/", "ws:///h/", "ws:////h",
        "ws://", "ws:///", "ws://?q", "ws://:80/", "ws://@/", "ws://@:80", "ws://u@/",
        "localhost:8080/x", "mailto:a@b", "1ws://h/", "+ws://h/", "w s://h/", "://h", ":",
        "ws://h/#", "ws://h/#frag", "ws://h#", "ws://h:0/", "ws://h:65536/", "ws://h:99999999999/",
        "ws://h:-1/", "ws://h:8a/", "ws://h: 80/", "ws://h h/", " ws://h/", "ws://h/ ",
        "ws://h/a b",
        "ws://h/\t", "ws://h/\n", "ws://h\r\nX: y/", "ws://h/\u{0}", "ws://h/\u{7F}",
        "ws://a\u{FF0F}b/", "ws://xn--\u{E9}/", "ws://\u{AD}/", "ws://%00/",
        "ws://h%0Ax/", "ws://h%2Fx/",
        "ws://h%20x/", "ws://[::1/", "ws://[::g]/", "ws://[]/", "ws://::1/", "ws://[::1]x/",
        "ws://a,b/", "ws://<h>/", "ws://h\\x/", "ws://a:b:c/", "ws://u%3Av:p@h/", "ws://u%00@h/",
        "ws://u:%0A@h/", "ws://%FF@h/",
    ])
    func otherTextsAreNotURLs(text: String) {
        let error = #expect(throws: RealtimeError.self) {
            try HTTPURL(parsing: text, as: .webSocket)
        }
        #expect(error?.code == .invalidURL)
        #expect(error?.message.hasPrefix("The URL \"") == true)
        #expect(error?.message.unicodeScalars.contains { $0.value < 0x20 } == false)
    }

    @Test func aURLHasALimit() throws {
        let base = "ws://h/"
        let room = HTTPURL.lengthLimit - base.utf8.count
        let longest = base + String(repeating: "x", count: room)
        #expect(try HTTPURL(parsing: longest, as: .webSocket).target.utf8.count == room + 1)
        let error = #expect(throws: RealtimeError.self) {
            try HTTPURL(parsing: longest + "x", as: .webSocket)
        }
        #expect(error?.code == .invalidURL)
    }

    @Test(arguments: [
        ("ws://me:secret@h/p?token=t", "\"ws://***@h/p?***\""),
        ("ws://me:sec/ret@h/p", "\"ws://***@h/p\""), ("ws://me:s@cret@h/", "\"ws://***@h/\""),
        ("me:secret@h", "\"***@h\""), ("ws://me:sec?ret@h/", "\"ws://***@h/\""),
        ("ws://h/p", "\"ws://h/p\""), ("ws://h/\u{1B}", "\"ws://h/\\u{1b}\""), ("", "\"\""),
    ])
    func messagesShowNoCredential(text: String, redacted: String) {
        #expect(HTTPURL.redacted(text) == redacted)
    }

    /// Another program opens such a URL, and it may contain a code.
    @Test(arguments: ["app:secret", "com.app:/cb?code=secret", "mailto:secret@h", "http:secret x"])
    func redirectsToOtherProgramsShowOnlyTheScheme(location: String) throws {
        let url = try HTTPURL(parsing: "http://h/", as: .http)
        let error = #expect(throws: RealtimeError.self) {
            _ = try url.resolving(redirect: Array(location.utf8))
        }
        let scheme = location.prefix { $0 != ":" }
        #expect(
            error?.message == "a URL of the scheme \"\(scheme)\" without a host is not followed")
    }

    /// Bytes that URLs cannot contain are percent-encoded, so the server gets the same bytes back.
    @Test(arguments: [
        ("/a b", "/a%20b"), ("/new/caf\u{E9}?q=\u{FF}", "/new/caf%E9?q=%FF"),
        ("/\u{C3}\u{A9}", "/%C3%A9"), ("/%E9%zz", "/%E9%zz"), (" /x\t\ty ", "/xy"),
        ("/\"<>^`{|}", "/%22%3C%3E%5E%60%7B%7C%7D"), ("/\u{1}\u{7F}", "/%01%7F"),
        ("/a#b c\u{E9}", "/a"), ("b c", "/d/b%20c"), ("?x y", "/d/e?x%20y"),
        ("http://h/a b/../c d", "/c%20d"), ("//h/a b", "/a%20b"),
    ])
    func redirectsKeepTheirBytes(location: String, target: String) throws {
        let latin1 = location.unicodeScalars.map { UInt8($0.value) }
        for kind in [HTTPURL.Kind.http, .webSocket] {
            let scheme = kind == .http ? "http" : "ws"
            let url = try HTTPURL(parsing: "\(scheme)://h/d/e?f", as: kind)
            let next = try url.resolving(redirect: latin1)
            #expect(next.target == target && next.origin == "\(scheme)://h")
            #expect(try HTTPURL(parsing: next.text, as: kind) == next)
        }
    }

    /// A backslash before the query counts as a slash (WHATWG URL §4.4), so that we use the same
    /// host as a browser.
    @Test(arguments: [
        ("\\x", "http://h/x"), ("x\\..\\y", "http://h/d/y"), ("\\?a\\b", "http://h/?a%5Cb"),
        ("\\\\k\\x", "http://k/x"), ("http:\\\\k", "http://k/"), ("/\\k/x", "http://k/x"),
        ("http://k\\@l/", "http://k/@l/"), ("http://k:80\\x", "http://k/x"),
    ])
    func redirectsWithBackslashes(location: String, expected: String) throws {
        for (kind, scheme) in [(HTTPURL.Kind.http, "http"), (.webSocket, "ws")] {
            let url = try HTTPURL(parsing: "\(scheme)://h/d/e?f", as: kind)
            let next = try url.resolving(redirect: Array(location.utf8))
            #expect(next.text == scheme + expected.dropFirst(4))
        }
    }

    /// The error shows the server's URL, without the parts that may contain a password.
    @Test func redirectsToAHostThatIsNotUTF8() throws {
        let url = try HTTPURL(parsing: "http://h/", as: .http)
        let error = #expect(throws: RealtimeError.self) {
            try url.resolving(redirect: Array("https://k%FF/x".utf8))
        }
        #expect(error?.message == "The URL \"https://***\" has a host that is not UTF-8")
    }

    /// A host cannot have such bytes, whatever their form.
    @Test(arguments: ["http://a b/", "//a b/", "//b\u{FC}cher/", "http://h\u{1}/"])
    func redirectsToAnInvalidHostAreRefused(location: String) throws {
        let url = try HTTPURL(parsing: "http://h/", as: .http)
        #expect(throws: RealtimeError.self) {
            try url.resolving(redirect: location.unicodeScalars.map { UInt8($0.value) })
        }
    }

    /// Parameters are compared by their decoded names.
    @Test(arguments: [
        ("", "?a%20b=1"), ("?", "?a%20b=1"), ("?c", "?c&a%20b=1"), ("?a%20b=0", "?a%20b=1"),
        ("?a+b=0&c=2&%61%20b", "?c=2&a%20b=1"), ("?a%2", "?a%2&a%20b=1"),
        ("?a%2x=0&a%252b", "?a%2x=0&a%252b&a%20b=1"), ("?A%20b=0", "?A%20b=0&a%20b=1"),
    ])
    func queryParameters(query: String, expected: String) throws {
        let url = try HTTPURL(parsing: "http://h/p" + query, as: .http)
        #expect(url.withQuery("a b", "1").target == "/p" + expected)
    }

    /// A URL that is derived without parsing equals the parsed one.
    @Test(arguments: [
        "http://h/", "https://h:8443/x?y", "http://u:p@h:80/", "http://[::1]:81/a", "http://H.k/",
        "http://[fe80::1%25lo]/",
    ])
    func siblings(base: String) throws {
        let url = try HTTPURL(parsing: base, as: .http)
        var generator = SeededGenerator(seed: 1)
        let pieces = [
            "/", "/", ".", "..", "a", "?", "%41", "#", "@", ":", "\\", " ", "é", "\u{301}", "&=",
            "~",
            "h:81", "[",
        ]
        var found = 0
        for _ in 0..<3000 {
            var text = url.origin
            // KELVIN SIGN is equivalent to K, but makes another host.
            if Int.random(in: 0..<10, using: &generator) == 0 {
                text = text.replacing("k", with: "\u{212A}")
            }
            for _ in 0..<Int.random(in: 0..<6, using: &generator) {
                text += pieces.randomElement(using: &generator) ?? ""
            }
            guard let sibling = url.sibling(text) else { continue }
            found += 1
            #expect(try sibling == HTTPURL(parsing: text, as: .http), "\(text)")
        }
        // A text without the zone would name another host, so it is always parsed.
        #expect(base.contains("%25") ? found == 0 : found > 50, "\(found)")
    }

    /// Swift considers the Kelvin sign equal to the letter.
    @Test func usersAndPasswordsAreComparedByBytes() throws {
        let texts = [
            "http://K:a@h/", "http://%E2%84%AA:a@h/", "http://K:K@h/", "http://K:%E2%84%AA@h/",
        ]
        let urls = try texts.map { try HTTPURL(parsing: $0, as: .http) }
        for (first, url) in urls.enumerated() {
            for (second, other) in urls.enumerated() {
                #expect((url == other) == (first == second), "\(texts[first]) \(texts[second])")
            }
        }
    }
}
