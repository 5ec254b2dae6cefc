import Testing
import Wire

struct CookieJarTests {
    private static let now: Int64 = 1_700_000_000_000

    private func url(_ text: String) throws -> HTTPURL { try HTTPURL(parsing: text, as: .http) }

    /// What is sent to a second URL after a response from the first one.
    private func sent(
        _ fields: [String], from first: String = "https://a.example/sockjs/1/2/xhr",
        to second: String = "https://a.example/sockjs/1/2/xhr_send", later: Int64 = 0,
        with given: [HeaderField] = []
    ) throws -> String? {
        var jar = CookieJar(host: "a.example")
        jar.take(fields, from: try url(first), wallClock: CookieJarTests.now)
        let fields = jar.fields(
            with: given, for: try url(second), wallClock: CookieJarTests.now + later)
        #expect(fields.filter { $0.name.lowercased() == "cookie" }.count <= 1)
        return fields.first { $0.name.lowercased() == "cookie" }?.value
    }

    @Test(arguments: [
        ("a=1", "a=1"), (" a = 1 2 ; HttpOnly", "a=1 2"), ("a=", "a="), ("a=\"x=y\"", "a=\"x=y\""),
        ("a=1; Path=/", "a=1"), ("a=1; path=/sockjs", "a=1"), ("a=1; Path=/sockjs/1/2/", "a=1"),
        ("a=1; Path=", "a=1"), ("a=1; Path=x", "a=1"), ("a=1; Path=/sock", nil),
        ("a=1; Path=/other", nil), ("a=1; Domain=a.example", "a=1"),
        ("a=1; Domain=.Example", "a=1"), ("a=1; Domain=b.example", nil),
        ("a=1; Domain=example.a.example", nil), ("a=1; Domain=ample", nil), ("a=1; Secure", "a=1"),
        ("a", nil), ("", nil), ("=1", nil), ("a=\u{1}", nil), ("a=é", nil), (";a=1", nil),
        ("a=1; SameSite=None; Partitioned; x", "a=1"),
    ])
    func whatAServerSets(field: String, cookie: String?) throws {
        #expect(try sent([field]) == cookie)
    }

    @Test func cookiesReplaceEachOther() throws {
        #expect(try sent(["a=1; Path=/", "a=2; Path=/"]) == "a=2")
        #expect(try sent(["a=1; Path=/", "b=2; Path=/sockjs", "c=3; Path=/"]) == "b=2; a=1; c=3")
        #expect(try sent(["a=1; Path=/", "a=; Path=/; Max-Age=0"]) == nil)
        #expect(try sent(["a=1", "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"]) == nil)
        #expect(try sent(["a=1; Path=/", "a=; Path=/sockjs; Max-Age=-1"]) == "a=1")
    }

    @Test(arguments: [
        ("a=1; Max-Age=10", 9_999, true), ("a=1; Max-Age=10", 10_000, false),
        ("a=1; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 9_999, true),
        ("a=1; Expires=Tue, 14 Nov 2023 22:13:30 GMT", 9_999, true),
        ("a=1; Expires=Tue, 14 Nov 2023 22:13:30 GMT", 10_000, false),
        ("a=1; Expires=soon; Max-Age=x", 1_000_000, true),
        ("a=1; Max-Age=9223372036854775807", 1_000_000, true),
        ("a=1; Max-Age=-9223372036854775808", 0, false),
    ])
    func cookiesExpire(field: String, later: Int64, isKept: Bool) throws {
        #expect(try (sent([field], later: later) != nil) == isKept)
    }

    @Test func cookiesStayWithTheirHost() throws {
        #expect(try sent(["a=1; Path=/"], from: "https://b.example/") == nil)
        #expect(try sent(["a=1; Path=/"], to: "https://b.example/") == nil)
        #expect(try sent(["a=1; Path=/"], to: "https://A.EXAMPLE:8443/") == "a=1")
        #expect(try sent(["a=1; Path=/"], to: "http://a.example/") == "a=1")
        #expect(try sent(["a=1; Path=/; Secure"], to: "http://a.example/") == nil)
        #expect(try sent(["a=1; Path=/; Secure"], from: "http://a.example/") == nil)
        #expect(try sent(["a=1; Path=/s"], to: "https://a.example/s?Path=/x") == "a=1")
    }

    @Test func cookiesFollowThoseOfTheProgram() throws {
        let given = [HeaderField(name: "COOKIE", value: "x=y"), HeaderField(name: "A", value: "b")]
        #expect(try sent(["a=1"], with: given) == "x=y; a=1")
        #expect(try sent([], with: given) == "x=y")
    }

    @Test func thereAreLimits() throws {
        let many = (1...60).map { "c\($0)=1" }
        #expect(try sent(many)?.split(separator: ";").count == 50)
        #expect(try sent(many)?.hasPrefix("c11=1;") == true)
        #expect(try sent(["a=" + String(repeating: "x", count: 4095)]) != nil)
        #expect(try sent(["a=" + String(repeating: "x", count: 4096)]) == nil)
        #expect(try sent(["a=1; Path=/" + String(repeating: "x", count: 4096)]) == nil)
    }
}
