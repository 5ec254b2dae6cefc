import Session
import Testing
import Wire

private func redirect(_ location: String?, _ status: Int = 302) -> ResponseHead {
    let fields = location.map { [HeaderField(name: "Location", value: $0)] } ?? []
    return ResponseHead(status: status, fields: fields)
}

private func configuration(
    _ url: String, _ change: (inout WebSocketConfiguration) -> Void = { _ in }
) throws -> WebSocketConfiguration {
    var configuration = try WebSocketConfiguration(url: url)
    try configuration.setBearerToken("secret")
    try configuration.addHeader(name: "accept-language", value: "cs")
    change(&configuration)
    return configuration
}

@Suite struct WebSocketAttemptTests {
    @Test(arguments: [
        ("/other", "ws://a.test:80", "/other"), ("?q", "ws://a.test:80", "/x/y?q"),
        ("z", "ws://a.test:80", "/x/z"), ("//b.test/z", "ws://b.test:80", "/z"),
        ("https://b.test/z?q#part", "wss://b.test:443", "/z?q"),
        ("WS://b.test:8080", "ws://b.test:8080", "/"),
        ("http://[::1]:81/", "ws://[::1]:81", "/"),
    ])
    func locationsAreResolved(_ location: String, _ place: String, _ target: String) throws {
        var configuration = try configuration("ws://a.test/x/y")
        try configuration.redirects.addOrigin("*")
        var attempt = WebSocketAttempt(configuration)
        #expect(try attempt.follows(redirect(location), configuration))
        let scheme = attempt.url.isSecure ? "wss" : "ws"
        #expect("\(scheme)://\(attempt.url.displayName)" == place)
        #expect(attempt.url.target == target)
    }

    @Test(arguments: [
        nil, "", "ftp://b.test/", "ws://", "http://b.test:0/", "http://b.test:99999/",
        "javascript:alert(1)",
    ])
    func badLocationsAreErrors(_ location: String?) throws {
        let configuration = try configuration("ws://a.test/")
        var attempt = WebSocketAttempt(configuration)
        #expect {
            try attempt.follows(redirect(location), configuration)
        } throws: { ($0 as? RealtimeError)?.code == .redirect }
        #expect(attempt.url == configuration.url)
    }

    @Test(arguments: [
        (301, true), (302, true), (303, true), (307, true), (308, true), (300, false),
        (304, false), (305, false), (200, false), (404, false),
    ])
    func theseStatusesAreRedirects(_ status: Int, _ follows: Bool) throws {
        let configuration = try configuration("ws://a.test/")
        var attempt = WebSocketAttempt(configuration)
        #expect(try attempt.follows(redirect("/b", status), configuration) == follows)
    }

    @Test func redirectsAreCounted() throws {
        let configuration = try configuration("ws://a.test/") { $0.redirects.maximum = 2 }
        var attempt = WebSocketAttempt(configuration)
        #expect(try attempt.follows(redirect("/b"), configuration))
        #expect(try attempt.follows(redirect("/c"), configuration))
        #expect(throws: RealtimeError.self) {
            try attempt.follows(redirect("/d"), configuration)
        }
        let none = try WebSocketAttemptTests.without(configuration)
        var other = WebSocketAttempt(none)
        #expect(try !other.follows(redirect("/b"), none))
    }

    private static func without(
        _ configuration: WebSocketConfiguration
    ) throws -> WebSocketConfiguration {
        var copy = configuration
        copy.redirects.maximum = 0
        return copy
    }

    @Test func plainTextIsRefusedUnlessAllowed() throws {
        var configuration = try configuration("wss://a.test/")
        var attempt = WebSocketAttempt(configuration)
        #expect(throws: RealtimeError.self) {
            try attempt.follows(redirect("ws://a.test/"), configuration)
        }
        configuration.redirects.allowsInsecure = true
        try configuration.redirects.addOrigin("ws://a.test")
        #expect(try attempt.follows(redirect("ws://a.test/"), configuration))
    }

    /// Its messages may be secret: tokens of a login, signatures of channels, or those that wait.
    @Test(arguments: ["wss://b.test/", "wss://a.test:444/", "wss://user:password@b.test/"])
    func anotherOriginIsRefused(_ location: String) throws {
        let configuration = try configuration("wss://user:password@a.test/")
        var attempt = WebSocketAttempt(configuration)
        let error = #expect(throws: RealtimeError.self) {
            try attempt.follows(redirect(location), configuration)
        }
        #expect(error?.code == .redirect)
        let origin = location.dropLast().replacing("user:password@", with: "")
        #expect(error?.message.contains("another origin, \(origin), which") == true)
        #expect(error?.message.hasSuffix(" (redirectOrigins)") == true)
        #expect(attempt.url == configuration.url)
    }

    @Test(arguments: ["wss://B.test", "https://b.test:443/", "*"])
    func anAllowedOriginReceivesEverything(_ origin: String) throws {
        var configuration = try configuration("wss://user:password@a.test/")
        try configuration.redirects.addOrigin(origin)
        var attempt = WebSocketAttempt(configuration)
        for location in ["wss://A.test:443/here", "wss://other:x@b.test/", "wss://a.test/"] {
            #expect(try attempt.follows(redirect(location), configuration))
            #expect(attempt.url.user == "user" && attempt.url.password == "password")
            #expect(attempt.fields.map(\.name) == ["Authorization", "accept-language"])
        }
        guard origin != "*" else { return }
        #expect(throws: RealtimeError.self) {
            try attempt.follows(redirect("wss://c.test/"), configuration)
        }
    }

    @Test(arguments: [
        "", "b.test", "https://", "https://b.test/path", "https://u:p@b.test", "ftp://b.test",
        "https://b.test/#", "**",
    ])
    func whatIsNotAnOriginIsRefused(_ origin: String) throws {
        var rules = Redirects.Rules(of: .websocket)
        #expect(throws: RealtimeError.self) { try rules.addOrigin(origin) }
        #expect(rules.origins.isEmpty)
    }
}
