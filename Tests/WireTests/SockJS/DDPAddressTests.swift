import Testing
import Wire

struct DDPAddressTests {
    @Test(arguments: [
        ("example.com", "ws://example.com/websocket", "http://example.com/sockjs"),
        ("localhost:3000", "ws://localhost:3000/websocket", "http://localhost:3000/sockjs"),
        ("[::1]:3000", "ws://[::1]:3000/websocket", "http://[::1]:3000/sockjs"),
        ("example.com/app", "ws://example.com/app/websocket", "http://example.com/app/sockjs"),
        ("http://example.com", "ws://example.com/websocket", "http://example.com/sockjs"),
        ("HTTPS://example.com/", "wss://example.com/websocket", "https://example.com/sockjs"),
        (
            "https://example.com/a/b/", "wss://example.com/a/b/websocket",
            "https://example.com/a/b/sockjs"
        ),
        ("ws://example.com", "ws://example.com/websocket", "http://example.com/sockjs"),
        (
            "wss://example.com:8443", "wss://example.com:8443/websocket",
            "https://example.com:8443/sockjs"
        ),
        ("ws://example.com/websocket", "ws://example.com/websocket", "http://example.com/sockjs"),
        (
            "http://example.com/p/websocket", "ws://example.com/p/websocket",
            "http://example.com/p/sockjs"
        ),
        (
            "wss://example.com/p/websocket/", "wss://example.com/p/websocket",
            "https://example.com/p/sockjs"
        ),
        (
            "ws://example.com/p/sockjs/websocket", "ws://example.com/p/sockjs/websocket",
            "http://example.com/p/sockjs"
        ),
        (
            "ws://example.com/sockjs", "ws://example.com/sockjs/websocket",
            "http://example.com/sockjs"
        ),
        (
            "ws://example.com/mywebsocket", "ws://example.com/mywebsocket/websocket",
            "http://example.com/mywebsocket/sockjs"
        ),
        (
            "http://example.com/p?a=b/c", "ws://example.com/p/websocket?a=b/c",
            "http://example.com/p/sockjs?a=b/c"
        ),
        (
            "https://example.com/#/lists", "wss://example.com/websocket",
            "https://example.com/sockjs"
        ),
    ])
    func aURLIsMapped(given: String, webSocket: String, sockJS: String) throws {
        let address = try DDPAddress(parsing: given)
        #expect(address.webSocket.text == webSocket)
        #expect(address.webSocket.kind == .webSocket)
        #expect(address.sockJS.text == sockJS)
        #expect(address.sockJS.kind == .http)
    }

    @Test func credentialsAreKept() throws {
        let address = try DDPAddress(parsing: "https://me:se%63ret@example.com/p")
        #expect(address.webSocket.password == "secret")
        #expect(address.sockJS.user == "me")
        let url = try address.url(of: SockJSSessionID(random: 0), .poll)
        #expect(url.password == "secret")
        #expect(address.key == "wss://example.com/p/websocket")
    }

    @Test(arguments: [
        ("http://example.com/p", "http://example.com/p/sockjs/000/aaaaaaaa/xhr"),
        ("wss://example.com?x=1", "https://example.com/sockjs/000/aaaaaaaa/xhr?x=1"),
        ("http://example.com/%2e%C3%A9", "http://example.com/%2e%C3%A9/sockjs/000/aaaaaaaa/xhr"),
    ])
    func aSessionHasURLs(given: String, poll: String) throws {
        let address = try DDPAddress(parsing: given)
        let session = SockJSSessionID(random: 0)
        #expect(try address.url(of: session, .poll).text == poll)
        let send = try address.url(of: session, .send).text
        #expect(send.split(separator: "?")[0] == poll.split(separator: "?")[0] + "_send")
    }

    @Test(arguments: [
        "", "ftp://example.com", "ws://", "http://", "ws:///x", "example.com:99999",
        "ws://example.com/#x", "httpx://example.com", "a b",
    ])
    func whatIsNoAddressIsAnError(given: String) {
        let error = #expect(throws: RealtimeError.self) { try DDPAddress(parsing: given) }
        #expect([.invalidURL, .unsupportedScheme].contains(error?.code))
    }

    @Test(arguments: [
        ("", "The URL is empty"),
        ("http://", "The URL \"http://\" has no host"),
        ("https://example.com:0", "The URL \"https://example.com:0\" has a port that"),
        ("wss://", "The URL \"wss://\" has no host"),
        ("a:0", "The URL \"ws://a:0\" has a port that"),
    ])
    func anErrorShowsTheURL(given: String, message: String) {
        let error = #expect(throws: RealtimeError.self) { try DDPAddress(parsing: given) }
        #expect(error?.code == .invalidURL)
        #expect(error?.message.hasPrefix(message) == true, "\(error?.message ?? "")")
    }

    @Test func anErrorNamesAllSchemes() {
        let error = #expect(throws: RealtimeError.self) {
            try DDPAddress(parsing: "ftp://me:secret@example.com")
        }
        #expect(error?.code == .unsupportedScheme)
        #expect(error?.message.contains("http, https, ws or wss") == true)
        #expect(error?.message.contains("secret") == false)
    }
}
