import Session
import Testing
import Wire

/// The code an option is refused with, nil when it is taken.
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
        "socks4a://proxy.test", "socks4://10.0.0.1:1", "socks5://proxy.test/",
    ])
    func proxiesAreTaken(_ url: String) {
        #expect(refusal { try $0.setProxy(url) } == nil)
    }

    @Test(arguments: [
        ("proxy.test:3128", RealtimeError.Code.invalidURL), ("ftp://proxy", .unsupportedScheme),
        ("http://", .invalidURL), ("http://a b", .invalidURL), ("http://a:99999", .invalidURL),
        ("http://a\r\nb", .invalidURL), ("://a", .unsupportedScheme),
    ])
    func proxiesAreRefused(_ url: String, _ code: RealtimeError.Code) {
        #expect(refusal { try $0.setProxy(url) } == code)
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
    ])
    func resolvesAreRefused(_ host: String, _ port: Int, _ address: String) {
        let code = refusal { try $0.addResolve(host: host, port: port, address: address) }
        #expect(code == .invalidArgument)
    }

    @Test func pathsAreChecked() {
        let long = String(repeating: "s", count: 108)
        let refused: [(inout NetworkConfiguration) throws -> Void] = [
            { try $0.setCAFile("") },
            { try $0.setCAPath("a\0b") },
            { try $0.setUnixSocket(long) },
            { try $0.setUnixSocket("") },
            { try $0.setClientCertificate("a", keyFile: "", keyPassword: nil) },
            { try $0.setClientCertificate("a", keyFile: nil, keyPassword: "a\0b") },
            { try $0.setReceiveBufferBytes(-1) },
            { try $0.setNoProxy("a\nb") },
        ]
        for change in refused { #expect(refusal(change) == .invalidArgument) }
    }
}
