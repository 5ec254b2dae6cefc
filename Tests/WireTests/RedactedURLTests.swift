import Testing
import Wire

/// No message shows a possible password, however a URL is mangled.
@Suite struct RedactedURLTests {
    @Test(arguments: [
        ("http://user:SECRET#x@host/", "\"http://***@host/\""),
        ("http://user:SECRET", "\"http://user:***\""),
        ("http://user:SECRET/path", "\"http://user:***\""),
        ("http://user:SECRET%40host/p", "\"http://user:***\""),
        ("http://user%3ASECRET%40host/p", "\"http://***\""),
        ("http://user\u{FF1A}SECRET\u{FF20}host/p", "\"http://***\""),
        ("http://a@b:SECRET/", "\"http://***@b:***\""),
        ("http://[user:SECRET/", "\"http://***\""),
        ("http://[::1]SECRET/", "\"http://[::1]***\""),
        ("http:/user:SECRET/x", "\"http:***\""),
        ("http:///user:SECRET/x", "\"http:///user:***\""),
        ("user:SECRET", "\"user:***\""),
        ("http://host\\user:SECRET", "\"http://***\""),
        ("http://host:123456/", "\"http://host:***\""),
        ("http://user:/SECRET:host/", "\"http://user***\""),
        ("http://host:80/a:b#token=x", "\"http://host:80/a:b#***\""),
        ("http://[2001:db8::1]:99999/p", "\"http://[2001:db8::1]:99999/p\""),
        ("http://m\u{FC}ller.example/p", "\"http://m\u{FC}ller.example/p\""),
        (
            "http://\u{939}\u{93F}\u{928}\u{94D}\u{926}\u{940}.example/p",
            "\"http://\u{939}\u{93F}\u{928}\u{94D}\u{926}\u{940}.example/p\""
        ),
        ("http://host\u{FF11}SECRET/p", "\"http://***\""),
        ("localhost:8080/path", "\"localhost:8080/path\""), ("/path", "\"/path\""),
    ])
    func possiblePasswordsAreHidden(text: String, shown: String) {
        #expect(HTTPURL.redacted(text) == shown)
    }

    @Test func aHostAfterAFragmentIsRefused() throws {
        let error = #expect(throws: RealtimeError.self) {
            try HTTPURL(parsing: "http://user:8080#x@host/", as: .http)
        }
        #expect(error?.code == .invalidURL)
        #expect(error?.message.contains("write # in a password as %23") == true)
        #expect(try HTTPURL(parsing: "http://host/p#x@y", as: .http).target == "/p")
        #expect(try HTTPURL(parsing: "http://host?x=a@b", as: .http).host == "host")
    }

    /// A password between random bytes, before random separators.
    @Test func mangledURLsShowNoPassword() throws {
        var random = Sequence(state: 13)
        let junk = Array(" !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\u{1}\u{7F}\u{E9}\u{FF20}\u{200B}a1")
        let marks = [
            "@", "%40", "#@", "?@", "/@", "\\@", "\u{FF20}", "", "#", "?", " @", "@@", ":",
        ]
        let schemes = [
            "http://", "https://", "HTTP://", "ws://", "http:/", "http:", "http:///", "//", "",
            "socks5://", "://",
        ]
        var refused = 0
        for _ in 0..<2000 {
            func some() -> String {
                String(
                    (0..<Int.random(in: 0...3, using: &random)).compactMap { _ in
                        junk.randomElement(using: &random)
                    })
            }
            let scheme = schemes.randomElement(using: &random) ?? ""
            let mark = marks.randomElement(using: &random) ?? ""
            let password = some() + "SECRET" + some()
            // A valid port, or a path after it, is not a password.
            let port = password.prefix { $0 != "/" }
            if !port.isEmpty, port.allSatisfy({ "1" == $0 }) { continue }
            let text = scheme + "user:" + password + mark + "host" + some() + "/p"
            // After an "@" it is the host, or that host's path.
            if password.prefix(while: { $0 != "S" }).contains("@") { continue }
            for message in messages(of: text) {
                refused += 1
                #expect(!message.contains("SECRET"), "\(text): \(message)")
            }
        }
        #expect(refused > 2000)
    }

    /// The same numbers in each run (Knuth's MMIX).
    private struct Sequence: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            var result: UInt64 = 0
            for _ in 0..<2 {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                result = result << 32 | state >> 32
            }
            return result
        }
    }

    private func messages(of text: String) -> [String] {
        var messages: [String] = []
        func note(_ body: () throws -> Void) {
            do {
                try body()
            } catch {
                messages.append((error as? RealtimeError)?.message ?? "\(error)")
            }
        }
        for kind in [HTTPURL.Kind.http, .webSocket] {
            note { messages.append("to " + (try HTTPURL(parsing: text, as: kind)).displayName) }
        }
        note {
            try ProxyURL.check(text)
            messages.append(ProxyURL.displayName(of: text))
        }
        return messages
    }
}
