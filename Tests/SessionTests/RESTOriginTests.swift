import Session
import Testing
import Wire

/// Which origins receive the headers that the client sends with all requests.
@Suite struct RESTOriginTests {
    private func configuration(
        _ base: String?, _ origins: [String] = []
    ) throws -> RESTConfiguration {
        var configuration = RESTConfiguration()
        if let base { try configuration.setBase(base) }
        for origin in origins { try configuration.addCredentialOrigin(origin) }
        return configuration
    }

    private func trusts(_ configuration: RESTConfiguration, _ url: String) throws -> Bool {
        configuration.trusts(try HTTPURL(parsing: url, as: .http))
    }

    @Test func onlyTheBaseOriginIsTrusted() throws {
        let client = try configuration("https://api.h/v1")
        #expect(try trusts(client, "https://API.h:443/elsewhere"))
        for url in [
            "http://api.h/v1", "https://api.h:444/", "https://h/", "https://api.h.evil/",
            "https://api.h@evil/",
        ] {
            #expect(try !trusts(client, url), "\(url)")
        }
    }

    @Test func originsCanBeAdded() throws {
        let client = try configuration("https://h/", ["https://files.h", "http://127.0.0.1:8080"])
        for url in ["https://h/x", "https://files.h/x", "http://127.0.0.1:8080/"] {
            #expect(try trusts(client, url), "\(url)")
        }
        #expect(try !trusts(client, "http://files.h/x"))
        #expect(try trusts(configuration("https://h/", ["*"]), "http://other/"))
    }

    /// The caller has chosen each URL.
    @Test func withoutABaseEachURLIsTrusted() throws {
        #expect(try trusts(configuration(nil), "http://any/"))
        let client = try configuration(nil, ["https://h"])
        #expect(try trusts(client, "https://h/"))
        #expect(try !trusts(client, "http://any/"))
    }

    @Test(arguments: ["https://h/path", "https://h/?q", "https://me@h", "https://h#x", "h", ""])
    func invalidOriginsAreRefused(origin: String) throws {
        let error = #expect(throws: RealtimeError.self) { try configuration(nil, [origin]) }
        #expect(error?.code == .invalidURL)
    }

    @Test func onlyHarmlessHeadersGoElsewhere() throws {
        var client = try configuration("https://h/")
        client.policy.redirects.safeNames = ["X-Safe"]
        for name in ["Accept", "user-agent", "Cookie", "X-Api-Key", "x-safe", "Authorization"] {
            try client.addHeader(name: name, value: "v")
        }
        #expect(
            client.fields(isTrusted: true).map(\.name) == [
                "Accept", "user-agent", "Cookie", "X-Api-Key", "x-safe",
            ])
        #expect(
            client.fields(isTrusted: false).map(\.name) == ["Accept", "user-agent", "x-safe"])
    }

    @Test func aForeignRequestHasNoCredentialAndAsksForNone() throws {
        var session = RESTSession(try configuration("http://h/"))
        session.renewsCredentials = true
        session.setCredential("Bearer t")
        let now = Instant(nanoseconds: 1)
        let request = HTTPRequest("GET", try HTTPURL(parsing: "http://other/", as: .http))
        let id = session.submit(
            RESTRequest(request, isTrusted: false), key: "", isReachable: true, now: now)
        guard case .start(_, let sent, _, _) = session.nextAction() else {
            Issue.record("nothing is sent")
            return
        }
        #expect(!sent.has("Authorization"))
        _ = session.received(
            ResponseHead(status: 401), of: id, now: now, wallClock: 0, random: 0)
        session.ended(id, nil, now: now, random: 0)
        guard case .finish(_, let outcome) = session.nextAction() else {
            Issue.record("credentials are asked for")
            return
        }
        #expect(outcome.head?.status == 401)
    }

    /// User and password of the base URL belong to its origin, however a URL there is written.
    @Test(
        arguments: [
            ("/a", "me"), ("https://h/v1/a", "me"), ("https://H:443/b?q", "me"),
            ("https://you:x@h/", "you"), ("https://you@h/", "you"), ("http://h/", nil),
            ("https://h:444/", nil), ("https://h.evil/", nil), ("https://files.h/", nil),
        ] as [(String, String?)])
    func credentialsOfTheBaseStayAtItsOrigin(url: String, user: String?) throws {
        let client = try configuration("https://me:secret@h/v1", ["https://files.h"])
        let made = try client.base.url(of: url)
        #expect(made.user == user)
        #expect((made.password == "secret") == (user == "me"))
    }

    @Test(arguments: [
        "..;/x", "..;", "..;a=b/x", "%2e%2e;/x", "%2E.;v=1/x", "..%3b/x", ".%2e%3Bx%2fy", "..;\\x",
        "a/..;/..;/x", "a;v=1/../..;/x", ";a/../x", "..;%5cx",
        "..", "../", "../x", "a/../../x", "/../x", "./../x", "%2e%2e/x", "%2E./x", ".%2e/x",
        "a/..%2f../x", "..%2Fx", "..%5cx", "..\\x", "a//../../x", "../v1/x", "../v1x?q",
    ])
    func noPathLeavesTheBase(path: String) throws {
        for base in ["https://h/v1", "https://h/"] {
            let client = try configuration(base)
            let error = #expect(throws: RealtimeError.self) { try client.base.url(of: path) }
            #expect(error?.code == .invalidURL)
            #expect(error?.message.contains("leads out of the base URL") == true)
        }
        let spreadbot = try SpreadbotConfiguration(base: "https://h/v1")
        #expect(throws: RealtimeError.self) { try spreadbot.url(path: path) }
    }

    @Test(arguments: [
        ("a/../b", "/v1/b"), ("a/b/../../c", "/v1/c"), ("./a", "/v1/a"), ("a/..", "/v1/"),
        ("..a/b", "/v1/..a/b"), ("a?x=../..", "/v1/a?x=../.."), ("...", "/v1/..."),
        ("a%2fb", "/v1/a%2fb"), ("a#../..", "/v1/a"), ("a;v=1/b", "/v1/a;v=1/b"),
        ("a;v=../b", "/v1/a;v=../b"), ("a..;x/b", "/v1/a..;x/b"), ("a?..;/..;/", "/v1/a?..;/..;/"),
    ])
    func pathsBelowTheBaseArePaths(path: String, target: String) throws {
        #expect(try configuration("https://h/v1").base.url(of: path).target == target)
    }
}
