import Session
import Testing
import Wire

@testable import Engine

private let transports = [DDPTransport.webSocket, .sockJS]

/// Both transports to a Meteor server behave in the same way.
struct DDPSocketTests {
    @Test(arguments: transports)
    func documentsArrive(transport: DDPTransport) throws {
        let server = try DDPSocketHarness()
        defer { server.end() }
        try server.control("collection", ["name": "players"])
        try server.control(
            "insert", ["collection": "players", "many": [["_id": "1", "name": "Åda \"😀\""]]])
        try server.control(
            "publication", ["name": "all", "cursors": [["collection": "players"]]])
        try server.connect(transport)
        server.send(#"{"msg":"sub","id":"s1","name":"all","params":[]}"#)
        try server.run(until: #"{"msg":"ready","subs":["s1"]}"#)
        let added = server.messages.first { $0["msg"] == "added" }
        #expect(added?["fields"]?["name"] == "Åda \"😀\"")
        try server.control(
            "update",
            ["collection": "players", "id": "1", "modifier": ["$set": ["name": "Bea"]]])
        try server.run(
            until: #"{"msg":"changed","collection":"players","id":"1","fields":{"name":"Bea"}}"#)
    }

    @Test(arguments: transports)
    func messagesKeepTheirOrder(transport: DDPTransport) throws {
        let server = try DDPSocketHarness()
        defer { server.end() }
        try server.connect(transport)
        // Some are sent in the same turn, some in a handler.
        var next = 0
        func ping() {
            next += 1
            server.send("{\"msg\":\"ping\",\"id\":\"\(next)\"}")
        }
        server.handle = { _ in if next < 200 { ping() } }
        for _ in 0..<20 { ping() }
        func pongs() -> [JSONValue] { server.messages.filter { $0["msg"] == "pong" } }
        try server.run { pongs().count == 200 }
        #expect(pongs().compactMap { $0["id"] } == (1...200).map { .string("\($0)") })
    }

    @Test(arguments: transports)
    func aPausedSocketReceivesNothing(transport: DDPTransport) throws {
        let server = try DDPSocketHarness()
        defer { server.end() }
        try server.connect(transport)
        server.socket?.setPaused(true)
        if transport == .sockJS {
            // The answer to the request that waits.
            try server.control("send", ["text": "{\"msg\":\"1\"}"])
            try server.run(until: #"{"msg":"1"}"#)
        }
        let count = server.messages.count
        try server.control("send", ["text": "{\"msg\":\"2\"}"])
        // Time enough for a fault to show; no verdict depends on it.
        for _ in 0..<20 { try server.loop.dispatch(timeout: 5) }
        #expect(server.messages.count == count)
        server.socket?.setPaused(false)
        try server.run(until: #"{"msg":"2"}"#)
        #expect(server.ends.isEmpty)
    }

    @Test(arguments: transports)
    func theServerCloses(transport: DDPTransport) throws {
        let server = try DDPSocketHarness()
        defer { server.end() }
        try server.connect(transport)
        try server.control("send", ["text": "{\"msg\":\"last\"}"])
        try server.control("close", ["code": 1001, "reason": "bye"])
        let end = try server.runToEnd()
        #expect(server.messages.last == ["msg": "last"])
        #expect(server.hearings > 0)
        #expect(end.error == nil)
        #expect(end.closeCode == (transport == .webSocket ? 1001 : 3000))
        #expect(end.reason == (transport == .webSocket ? "bye" : "Go away!"))
    }

    @Test(arguments: transports, ["end", "reset"])
    func theConnectionIsLost(transport: DDPTransport, how: String) throws {
        let server = try DDPSocketHarness()
        defer { server.end() }
        try server.connect(transport)
        try server.control("end", ["how": .string(how)])
        let end = try server.runToEnd()
        #expect(end.error?.code == .connectionLost)
        #expect(end.closeCode == nil)
        server.send("{}")
        try server.loop.dispatch(timeout: 0)
        #expect(server.ends.count == 1)
    }

    @Test(arguments: transports)
    func closingSendsWhatWaits(transport: DDPTransport) throws {
        let server = try DDPSocketHarness()
        defer { server.end() }
        try server.connect(transport)
        for number in 1...5 { server.send("{\"msg\":\"ping\",\"id\":\"\(number)\"}") }
        server.send(#"{"msg":"disconnect"}"#)
        server.socket?.close()
        let end = try server.runToEnd()
        #expect(end.error == nil)
        let received = try server.control("log", ["what": "in", "msg": "disconnect"])
        #expect(received.arrayValue?.count == 1)
    }

    @Test(arguments: transports)
    func aDroppedSocketReportsNothing(transport: DDPTransport) throws {
        let server = try DDPSocketHarness()
        defer { server.end() }
        try server.connect(transport)
        server.handle = { _ in server.socket?.drop() }
        for number in 1...3 { server.send("{\"msg\":\"ping\",\"id\":\"\(number)\"}") }
        try server.run { server.messages.contains { $0["msg"] == "pong" } }
        // The server would notice the end of a SockJS session only by the lack of polls.
        try server.control("end")
        try server.control("wait", ["what": "end"])
        for _ in 0..<3 { try server.loop.dispatch(timeout: 0) }
        #expect(server.messages.filter { $0["msg"] == "pong" }.count == 1)
        #expect(server.ends.isEmpty)
    }

    /// What the server has heard of the cookies with which connections were opened.
    private func cookies(_ server: DDPSocketHarness) throws -> [String?] {
        try server.control("log", ["what": "open"]).arrayValue?
            .map { $0["headers"]?["Cookie"]?.stringValue } ?? []
    }

    /// A load balancer leads requests with its cookie to one server.
    @Test(arguments: transports)
    func cookiesAreSentBack(transport: DDPTransport) throws {
        let server = try DDPSocketHarness(["sticky": true])
        defer { server.end() }
        server.configuration.headers.set("Cookie", "own=1")
        try server.connect(transport)
        for number in 1...5 { server.send("{\"msg\":\"ping\",\"id\":\"\(number)\"}") }
        try server.run { server.messages.contains { $0["id"] == "5" } }
        server.socket?.drop()
        let others = transports.filter { $0 != transport } + [transport]
        for other in others {
            try server.start(other)
            try server.run { server.openings > others.firstIndex(of: other)! + 1 }
            server.socket?.drop()
        }
        let heard = try cookies(server)
        let route = try #require(heard.last.flatMap { $0 })
        #expect(route.hasPrefix("own=1; route=r"))
        #expect(heard == ["own=1", route, route])
    }

    /// Where WebSockets are blocked, the refusal says which server to use.
    @Test func aRefusalMaySetACookie() throws {
        let server = try DDPSocketHarness(["sticky": true, "websocket": false])
        defer { server.end() }
        try server.start(.webSocket)
        #expect(try server.runToEnd().error?.response?.status == 404)
        try server.connect(.sockJS)
        #expect(try cookies(server).map { $0?.hasPrefix("route=r") } == [true])
    }

    @Test(arguments: transports)
    func aRefusalHasItsResponse(transport: DDPTransport) throws {
        let server = try DDPSocketHarness()
        defer { server.end() }
        try server.control(
            "fault", ["point": "handshake", "do": "status", "code": 403, "text": "blocked"])
        try server.start(transport)
        let error = try #require(try server.runToEnd().error)
        #expect(error.code == .httpStatus)
        #expect(error.response?.status == 403)
        #expect(error.response?.body == Array("blocked".utf8))
        #expect(server.openings == 0)
    }

    @Test(arguments: transports)
    func whatWaitsIsLimited(transport: DDPTransport) throws {
        let server = try DDPSocketHarness()
        defer { server.end() }
        server.configuration.unsentLimit = 1000
        try server.connect(transport)
        // Hardly compressible.
        let long = (0..<900).map { _ in UInt8.random(in: 0x5D...0x7E) }
        for _ in 0..<3 { server.socket?.send(long) }
        #expect(server.ends.isEmpty)
        #expect(try server.runToEnd().error?.code == .bufferFull)
    }

    @Test(arguments: transports)
    func whatIsReceivedIsLimited(transport: DDPTransport) throws {
        let server = try DDPSocketHarness()
        defer { server.end() }
        server.configuration.receiveLimit = 10_000
        try server.connect(transport)
        let long = String(repeating: "x", count: 10_000)
        try server.control("send", ["text": .string("{\"msg\":\"\(long)\"}")])
        #expect(try server.runToEnd().error?.code == .tooLarge)
    }

    @Test(arguments: transports)
    func theEndOfTheLoopEndsTheSocket(transport: DDPTransport) throws {
        let server = try DDPSocketHarness()
        defer { server.end() }
        try server.connect(transport)
        server.loop.close()
        server.send("{}")
        server.socket?.close()
        #expect(server.ends.isEmpty)
    }

    @Test func aWebSocketIsCompressed() throws {
        let server = try DDPSocketHarness()
        defer { server.end() }
        try server.connect(.webSocket)
        let opened = try server.control("log", ["what": "open"])
        let headers = opened[0]?["headers"]?.objectValue?.members ?? []
        let offered = headers.first { $0.name.lowercased() == "sec-websocket-extensions" }
        #expect(offered?.value.stringValue?.contains("permessage-deflate") == true)
    }

    @Test func requestsOfSockJSHaveTheHeaders() throws {
        let server = try DDPSocketHarness()
        defer { server.end() }
        try server.configuration.addHeader(name: "X-Test", value: "1")
        try server.connect(.sockJS)
        let opened = try server.control("log", ["what": "open"])
        #expect(opened[0]?["transport"] == "xhr")
        #expect(opened[0]?["headers"]?["X-Test"] == "1")
    }

    @Test func aHeartbeatOfSockJSKeepsTheSession() throws {
        let server = try DDPSocketHarness(["sockjs_heartbeat": 0.02])
        defer { server.end() }
        try server.connect(.sockJS)
        server.send(#"{"msg":"ping","id":"1"}"#)
        try server.run(until: #"{"msg":"pong","id":"1"}"#)
        // Nothing but heartbeats arrives.
        let before = server.hearings
        try server.run { server.hearings >= before + 10 }
        #expect(server.messages.count == 2)
        server.send(#"{"msg":"ping","id":"2"}"#)
        try server.run(until: #"{"msg":"pong","id":"2"}"#)
        #expect(server.ends.isEmpty)
    }

    @Test func aBlockedWebSocketIsReplacedBySockJS() throws {
        let server = try DDPSocketHarness(["websocket": false])
        defer { server.end() }
        var choice = DDPTransportChoice(mayFallBack: true)
        try server.start(choice.begin(now: Loop.now()))
        choice.failed(try server.runToEnd().error, now: Loop.now())
        try server.connect(choice.begin(now: Loop.now()))
        choice.connected()
        #expect(choice.begin(now: Loop.now()) == .sockJS)
    }
}
