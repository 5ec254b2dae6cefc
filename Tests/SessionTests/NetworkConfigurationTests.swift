import Session
import Testing
import Wire

/// The error code of a refused option; nil if it is accepted.
private func refusal(
    _ change: (inout NetworkConfiguration) throws -> Void
) -> RealtimeError.Code? {
    var network = NetworkConfiguration()
    let before = network
    do {
        try change(&network)
        return nil
    } catch {
        #expect(network == before)
        return (error as? RealtimeError)?.code
    }
}

@Suite struct NetworkConfigurationTests {
    @Test(arguments: [
        "http://proxy.test:3128", "HTTPS://proxy.test", "socks5h://user:p%40ss@[::1]:1080", "",
        "socks4a://proxy.test", "socks4://10.0.0.1:1", "socks5://proxy.test/", "http://a:65535/",
    ])
    func proxiesAreTaken(_ url: String) {
        #expect(refusal { try $0.setProxy(url) } == nil)
    }

    @Test(arguments: [
        ("proxy.test:3128", RealtimeError.Code.invalidURL), ("ftp://proxy", .unsupportedScheme),
        ("http://", .invalidURL), ("http://a b", .invalidURL), ("http://a:99999", .invalidURL),
        ("http://a\r\nb", .invalidURL), ("://a", .unsupportedScheme), ("http://a:0", .invalidURL),
        ("http://a:1/path", .invalidURL), ("http://a:1?query", .invalidURL),
        ("http://a/#fragment", .invalidURL), ("socks5h://localhost/run/socket", .invalidURL),
    ])
    func proxiesAreRefused(_ url: String, _ code: RealtimeError.Code) {
        #expect(refusal { try $0.setProxy(url) } == code)
    }

    @Test(arguments: [
        "-----BEGIN PRIVATE KEY-----\nsecret", "Bag\n-----BEGIN CERTIFICATE-----\nsecret",
        // The key without its first and last line, whose bytes spell "secret" in base64.
        "MC4CAQAwBQYDK2VwBCIEIAsecretAsecretAsecretAsecretAsecretAsecretA",
        "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg"
            + String(repeating: "secret++", count: 17),
    ])
    func pemTextIsNotAFileName(_ text: String) {
        var network = NetworkConfiguration()
        for key in [nil, "key.pem", text] {
            do throws(RealtimeError) {
                let certificate = key == text ? "cert.pem" : text
                try network.setClientCertificate(certificate, keyFile: key, keyPassword: nil)
                Issue.record("taken")
            } catch {
                #expect(error.message.contains("is PEM text; the name of a file"))
                #expect(!error.message.contains("secret"))
            }
        }
        do throws(RealtimeError) {
            var source = try EventSourceConfiguration(url: "http://127.0.0.1/")
            try source.setIDFile(text, key: nil)
            Issue.record("taken")
        } catch {
            #expect(error.message.contains("is PEM text") && !error.message.contains("secret"))
        }
        #expect(!FileName.isPEM("-----BEGIN") && !FileName.isPEM("/etc/ssl/-----begin x.pem"))
    }

    /// A host with a password is not shown, but the one that stands for all hosts is.
    @Test(arguments: [("*", "\"*\""), ("ada:5ecret@host", "***")])
    func aRefusedHostIsNamed(host: String, shown: String) {
        var network = NetworkConfiguration()
        do throws(RealtimeError) {
            try network.addResolve(host: host, port: 80, address: "127.0.0.1")
            Issue.record("taken")
        } catch {
            #expect(error.message.contains(shown), "\(error.message)")
            #expect(!error.message.contains("5ecret"))
        }
    }

    @Test func aRefusedProxyKeepsItsPasswordSecret() {
        var network = NetworkConfiguration()
        do throws(RealtimeError) {
            try network.setProxy("gopher://user:secret@host")
            Issue.record("taken")
        } catch {
            #expect(!error.message.contains("secret"))
        }
    }

    @Test(arguments: [
        "", "sha256//", "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "sha1//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA;AAAAA=",
    ])
    func pinsAreRefused(_ pin: String) {
        let code = refusal { try $0.addPinnedPublicKey(pin) }
        #expect(code == .invalidArgument)
    }

    @Test(arguments: [
        ("", 1, "::1"), ("a:b", 1, "::1"), ("a", 0, "::1"), ("a", 65536, "::1"), ("a", 1, ""),
        ("a", 1, "[::1]"), ("a", 1, "1.2.3.4,5.6.7.8"), ("*", 1, "::1"), ("a b", 1, "::1"),
        ("ü:b", 1, "::1"), ("ü*", 1, "::1"), ("a\u{FF0F}b", 1, "::1"), ("\u{AD}", 1, "::1"),
    ])
    func resolvesAreRefused(_ host: String, _ port: Int, _ address: String) {
        let code = refusal { try $0.addResolve(host: host, port: port, address: address) }
        #expect(code == .invalidArgument)
    }

    /// An international name in every form means the host of a URL with it.
    @Test(arguments: ["zürich.test", "ZÜRICH.test", "zu\u{308}rich.test", "xn--zrich-kva.test"])
    func resolvesTakeInternationalNames(_ host: String) throws {
        var network = NetworkConfiguration()
        try network.addResolve(host: host, port: 80, address: "192.0.2.1")
        let url = try HTTPURL(parsing: "http://zürich.test/", as: .http)
        let target = ConnectTarget(of: url, by: network, proxyURL: nil)
        #expect(target.known == ["192.0.2.1"])
    }

    @Test func pathsAreChecked() {
        let refused: [(inout NetworkConfiguration) throws -> Void] = [
            { try $0.setClientCertificate("a", keyFile: "", keyPassword: nil) },
            { try $0.setClientCertificate("a", keyFile: nil, keyPassword: "a\0b") },
            { try $0.setNoProxy("a\nb") },
        ]
        for change in refused { #expect(refusal(change) == .invalidArgument) }
    }

    @Test(arguments: [
        ("10.0.0.0/99", "whose length is not in 0 to 32"), ("::/129", "not in 0 to 128"),
        ("10.0.0.0/", "whose length"), ("10.0.0.0/+8", "whose length"), ("a/8", "a network"),
        ("10.0.0/8", "a network"), ("*.example.org", "neither a host"), ("a:0", "whose port"),
        ("a:65536", "whose port"), ("a:", "whose port"), ("a:x", "whose port"),
        (":80", "neither a host"), ("[::1]:", "whose port"), ("10.0.0.0/8:80", "whose length"),
        (".", "neither a host"), ("b, 10.0.0.0/33", "\"10.0.0.0/33\""),
    ])
    func invalidNoProxyEntriesAreNamed(_ list: String, _ text: String) {
        var network = NetworkConfiguration()
        do throws(RealtimeError) {
            try network.setNoProxy(list)
            Issue.record("taken")
        } catch {
            #expect(error.code == .invalidArgument && error.message.contains(text), "\(error)")
        }
    }
}

@Suite struct ProxyChoiceTests {
    private func proxy(
        to url: String, _ environment: [String: String] = [:],
        _ change: (inout NetworkConfiguration) throws -> Void = { _ in }
    ) throws -> String? {
        var network = NetworkConfiguration()
        try change(&network)
        return network.proxyURL(to: try HTTPURL(parsing: url, as: .http)) { environment[$0] }
    }

    @Test(arguments: [
        ("*", "http://example.org/", true), ("", "http://example.org/", false),
        ("example.org", "http://Example.org/", true),
        ("example.org", "http://a.example.org/", true),
        (".example.org", "http://example.org/", true),
        ("example.org:80", "http://example.org/", true),
        ("example.org:8080", "http://example.org/", false),
        ("example.org:8080", "http://a.example.org:8080/", true),
        ("127.0.0.1:8080", "http://127.0.0.1:8080/", true),
        ("127.0.0.1:8080", "http://127.0.0.1:8081/", false),
        ("[::1]:8080", "http://[::1]:8080/", true),
        ("[::1]:8080", "http://[::1]/", false),
        ("::1", "http://[::1]:8080/", true),
        ("*:8080", "http://example.org:8080/", true),
        ("*:8080", "http://example.org/", false),
        ("example.org.", "http://example.org/", true),
        ("example.org", "http://example.org./", true),
        ("example.org", "http://nexample.org/", false),
        ("a.example.org", "http://example.org/", false), ("x,, *", "http://example.org/", true),
        ("b c", "http://c/", true), ("10.0.0.0/8", "http://10.1.2.3/", true),
        ("10.0.0.0/8", "http://11.1.2.3/", false), ("10.1.2.3", "http://10.1.2.3/", true),
        ("10.1.2.3", "http://10.1.2.4/", false), ("0.0.0.0/0", "http://10.1.2.4/", true),
        ("0.0.0.0/0", "http://[::1]/", false), ("2001:db8::/32", "http://[2001:db8::1]/", true),
        ("[2001:db8::1]", "http://[2001:db8::1]/", true),
        ("10.0.0.0/8", "http://a10.1.2.3/", false),
        ("münchen.test", "http://xn--mnchen-3ya.test/", true),
        ("xn--mnchen-3ya.test", "http://münchen.test/", true),
        ("MÜNCHEN.test:80", "http://a.münchen.test/", true),
        (".münchen.test.", "http://münchen.test/", true),
        ("mu\u{308}nchen.test:81", "http://münchen.test/", false),
        ("zürich.test", "http://münchen.test/", false),
    ])
    func noProxyListsMatch(_ list: String, _ url: String, _ isDirect: Bool) throws {
        let chosen = try proxy(to: url) {
            try $0.setProxy("http://proxy")
            try $0.setNoProxy(list)
        }
        #expect(chosen == (isDirect ? nil : "http://proxy"))
        let environment = ["ALL_PROXY": "proxy", "NO_PROXY": list]
        #expect(try proxy(to: url, environment) == (isDirect ? nil : "proxy"))
    }

    /// As in libcurl, an invalid entry matches nothing.
    @Test func theEnvironmentMayBeInvalid() throws {
        let environment = ["http_proxy": "proxy", "no_proxy": "10.0.0.0/99,*.org,a"]
        #expect(try proxy(to: "http://10.0.0.1/", environment) == "proxy")
        #expect(try proxy(to: "http://a/", environment) == nil)
    }

    @Test func aUnixSocketNeedsNoProxy() throws {
        let chosen = try proxy(to: "http://a/") {
            try $0.setProxy("http://proxy")
            $0.unixSocket = "/socket"
        }
        #expect(chosen == nil)
    }

    @Test(arguments: [
        ("http://user:p@ss@proxy.example:3128", "proxy.example:3128"),
        ("socks5h://proxy.example/", "proxy.example:1080"), ("proxy:80", "proxy:80"),
        ("HTTPS://proxy", "proxy:443"), ("http://[::1]:8080/", "[::1]:8080"),
        ("http://[fe80::1%25eth0]", "[fe80::1]:1080"),
        ("http://münchen.test:3128", "xn--mnchen-3ya.test:3128"),
        ("http://a_b.test", "a_b.test:1080"), ("http://ü\u{FF0F}b:1", "ü\u{FF0F}b:1"),
    ])
    func proxiesAreNamedByHostAndPort(_ url: String, _ name: String) {
        #expect(ProxyURL.displayName(of: url) == name)
    }
}
