import Session
import Testing
import Wire

/// Redirects of requests to another origin (docs/http.md, G7 and G8).
@Suite struct RedirectsTests {
    private static let secret = Array("token=secret".utf8)

    private func follow(
        _ status: Int, _ request: inout HTTPRequest, to location: String = "https://b.test/",
        _ rules: Redirects.Rules = Redirects.Rules(of: .rest)
    ) throws -> Bool {
        var redirects = Redirects()
        let head = ResponseHead(
            status: status, fields: [HeaderField(name: "Location", value: location)])
        return try redirects.follow(head, &request, from: request.url, rules)
    }

    private func request(
        _ method: String = "POST", body: HTTPRequest.Body = .bytes(secret)
    ) throws -> HTTPRequest {
        let fields = [
            HeaderField(name: "X-Key", value: "secret"),
            HeaderField(name: "Content-Type", value: "text/plain"),
        ]
        let url = try HTTPURL(parsing: "https://u:p@a.test/x", as: .http)
        return HTTPRequest(method, url, fields: fields, body: body)
    }

    @Test(arguments: [
        (307, "POST"), (308, "POST"), (307, "PUT"), (301, "PUT"), (302, "PATCH"), (308, "DELETE"),
    ])
    func bodiesStayWithTheirOrigin(_ status: Int, _ method: String) throws {
        for body in [.bytes(RedirectsTests.secret), .stream(length: nil), .stream(length: 3)]
            as [HTTPRequest.Body]
        {
            var request = try request(method, body: body)
            let error = #expect(throws: RealtimeError.self) { try follow(status, &request) }
            #expect(
                error
                    == RealtimeError(
                        .redirect,
                        "a.test:443 redirects to another origin, https://b.test, which may not"
                            + " receive the body of the request (redirectOrigins)"))
            #expect(request.url.host == "a.test" && request.fields.count == 2)
        }
    }

    @Test(arguments: [(301, "POST"), (302, "POST"), (303, "PUT"), (303, "POST")])
    func requestsThatBecomeAGETAreFollowed(_ status: Int, _ method: String) throws {
        var request = try request(method)
        #expect(try follow(status, &request))
        #expect(request.method == "GET" && request.body == .none && request.fields.isEmpty)
        #expect(request.url.host == "b.test" && request.url.user == nil)
    }

    @Test(arguments: [HTTPRequest.Body.none, .bytes([]), .stream(length: 0)])
    func requestsWithoutABodyAreFollowed(_ body: HTTPRequest.Body) throws {
        var request = try request("DELETE", body: body)
        #expect(try follow(307, &request))
        #expect(request.fields.map(\.name) == ["Content-Type"] && request.url.user == nil)
    }

    @Test func theSameOriginReceivesTheBody() throws {
        var request = try request()
        #expect(try follow(307, &request, to: "https://A.test:443/y"))
        #expect(request.body == .bytes(RedirectsTests.secret) && request.fields.count == 2)
    }

    /// It is the usual answer to a URL without TLS.
    @Test(arguments: [
        ("http://a.test/", "https://A.test/", true),
        ("http://a.test:81/", "https://a.test:81", true),
        ("http://a.test/", "https://a.test:81/", false),
        ("http://a.test/", "https://b.test", false),
        ("https://a.test/", "http://a.test/", false), ("http://a.test", "http://a.test:81", false),
    ])
    func theSameHostByTLSReceivesTheBody(_ url: String, _ next: String, isFollowed: Bool) throws {
        var rules = Redirects.Rules(of: .rest)
        rules.allowsInsecure = true
        let fields = [HeaderField(name: "X-Key", value: "secret")]
        let url = try HTTPURL(parsing: url, as: .http)
        var request = HTTPRequest(
            "POST", url, fields: fields, body: .bytes(RedirectsTests.secret))
        guard isFollowed else {
            #expect(throws: RealtimeError.self) { try follow(308, &request, to: next, rules) }
            return
        }
        #expect(try follow(308, &request, to: next, rules))
        #expect(request.body == .bytes(RedirectsTests.secret) && request.fields.isEmpty)
    }

    @Test func anAllowedOriginReceivesEverything() throws {
        var rules = Redirects.Rules(of: .rest)
        try rules.addOrigin("https://b.test")
        var request = try request()
        #expect(try follow(308, &request, to: "https://b.test/", rules))
        #expect(request.body == .bytes(RedirectsTests.secret) && request.fields.count == 2)
        #expect(request.url.host == "b.test" && request.url.user == "u")
        var other = try self.request()
        #expect(throws: RealtimeError.self) {
            try follow(308, &other, to: "https://c.test/", rules)
        }
    }
}
