import Documents
import Foundation
import Session
import Testing
import Wire

@testable import Engine

struct DDPConnectionTests {
    @Test func documentsArriveAndLiveQueriesFollow() throws {
        let meteor = try DDPClientHarness()
        defer { meteor.end() }
        try meteor.makePlayers()
        var changes: [ListChange] = []
        let live = try meteor.client.observe(Query(selector: .object(EJSONObject())), in: "players")
        { change, _ in
            changes += change.changes
        } ended: { _ in
        }
        #expect(live.found.isEmpty)
        try meteor.connect()
        try meteor.subscribe("all")
        #expect(meteor.name(of: "a") == "Ada")
        #expect(changes.count == 1)
        try meteor.rename("a", to: "Bea")
        try meteor.run { changes.count == 2 }
        #expect(meteor.name(of: "a") == "Bea")
        meteor.client.stopObserving(live.id)
        try meteor.rename("a", to: "Cleo")
        try meteor.run { meteor.name(of: "a") == "Cleo" }
        #expect(changes.count == 2)
    }

    /// A pause neither keeps a client from connecting nor its calls from the server.
    @Test func aPausedClientSendsAndReceivesNothing() throws {
        let meteor = try DDPClientHarness()
        defer { meteor.end() }
        try meteor.makePlayers()
        try meteor.client.pause()
        try meteor.connect()
        let handle = try meteor.client.subscribe("all")
        try meteor.server.control("wait", ["count": 1, "what": "in", "msg": "sub"])
        // Time enough for a fault to show; no verdict depends on it.
        for _ in 0..<20 { try meteor.server.loop.dispatch(timeout: 5) }
        #expect(!meteor.client.isReady(handle) && meteor.name(of: "a") == nil)
        try meteor.client.resume()
        try meteor.run { meteor.client.isReady(handle) }
        #expect(meteor.name(of: "a") == "Ada" && meteor.client.status == .connected)
    }

    @Test func aStubIsSeenBeforeTheCallReturns() throws {
        let meteor = try DDPClientHarness()
        defer { meteor.end() }
        try meteor.makePlayers()
        try meteor.server.control(
            "method",
            [
                "name": "rename",
                "ops": [
                    [
                        "op": "update", "collection": "players", "id": "a",
                        "modifier": ["$set": ["name": ["$param": 0]]],
                    ], ["op": "return", "value": 7],
                ],
            ])
        try meteor.connect()
        try meteor.subscribe("all")
        try meteor.client.setStub("rename") { context, params in
            do throws(DDPError) {
                guard case .string(let name)? = params.first else { return .success(.null) }
                let count = try context.update("players", .string("a"), .naming(name))
                return .success(.number(Double(count)))
            } catch {
                return .failure(error)
            }
        }
        let call = try meteor.client.call(
            DDPRequest("rename", [.string("Bea")]), meteor.reporting("rename"))
        #expect(try call.get().value == .number(1))
        #expect(meteor.name(of: "a") == "Bea")
        try meteor.run(until: "rename: 7")
        #expect(meteor.lines.suffix(2) == ["rename: result", "rename: 7"])
        #expect(try meteor.names() == ["Bea"])
        #expect(meteor.client.shared.locked { meteor.client.shared.session.isSettled })
    }

    /// Swift considers the Kelvin sign equal to the letter.
    @Test func aStubIsFoundByTheBytesOfItsName() throws {
        let meteor = try DDPClientHarness()
        defer { meteor.end() }
        let client = meteor.client
        try client.setStub("K") { _, _ in .success(.string("letter")) }
        #expect(try client.call(DDPRequest("\u{212A}")).get().value == .null)
        try client.setStub("\u{212A}") { [unowned client] _, _ in
            .success((try? client.call(DDPRequest("K")).get().value) ?? .null)
        }
        #expect(try client.call(DDPRequest("\u{212A}")).get().value == .string("letter"))
        try client.setStub("\u{212A}", nil)
        #expect(try client.call(DDPRequest("K")).get().value == .string("letter"))
    }

    @Test func aCallInsideAStubSendsNothing() throws {
        let meteor = try DDPClientHarness()
        defer { meteor.end() }
        try meteor.makePlayers()
        try meteor.server.control("method", ["name": "outer", "ops": []])
        try meteor.connect()
        try meteor.client.declare("players")
        let client = meteor.client
        try client.setStub("inner") { _, _ in .success(.string("from the stub")) }
        try client.setStub("outer") { [unowned client] context, _ in
            let inner = try? client.call(DDPRequest("inner")).get()
            _ = try? client.insert("players", .named("Eve"))
            #expect(
                (try? context.find(Query(selector: .object(EJSONObject())), in: "players").count)
                    == 1)
            return .success(inner?.value ?? .null)
        }
        let call = try client.call(DDPRequest("outer"), meteor.reporting("outer"))
        #expect(try call.get().value == .string("from the stub"))
        try meteor.run {
            meteor.lines.contains { $0.hasPrefix("outer: ") && $0 != "outer: result" }
        }
        let methods = try meteor.server.control("log", ["what": "in", "msg": "method"])
        #expect(methods.arrayValue?.count == 1)
        // The server inserted nothing, so what the stub inserted is gone.
        #expect(client.count(of: "players") == 0)
    }

    /// The stub has the lock that the work of the loop needs.
    @Test func aStubCannotRunALoopButMayFreeTheClient() throws {
        let meteor = try DDPClientHarness()
        let client = meteor.client
        var codes: [RealtimeError.Code] = []
        func expectRefusal(_ body: () throws(RealtimeError) -> Void) {
            do throws(RealtimeError) { try body() } catch { codes.append(error.code) }
        }
        try client.setStub("end") { [unowned client] context, _ in
            expectRefusal { () throws(RealtimeError) in try client.loop.dispatch(timeout: 0) }
            expectRefusal { () throws(RealtimeError) in try client.loop.stopAndWait() }
            client.close()
            client.loop.close()
            _ = try? context.insert("players", .named("Eve"))
            return .success(.string("ended"))
        }
        #expect(try client.call(DDPRequest("end")).get().value == .string("ended"))
        #expect(codes == [.reentrant, .reentrant])
        #expect(client.status == .offline)
        meteor.end()
    }

    @Test func theContextOfAStubEndsWithIt() throws {
        let meteor = try DDPClientHarness()
        defer { meteor.end() }
        var kept: DDPStubContext?
        try meteor.client.setStub("keep") { context, _ in
            kept = context
            return .success(.null)
        }
        _ = try meteor.client.call(DDPRequest("keep"))
        #expect(throws: DDPError.self) { try kept?.insert("players", .named("Eve")) }
        kept = nil
    }

    @Test func anErrorOfAStubStopsTheCallIfAskedTo() throws {
        let meteor = try DDPClientHarness()
        defer { meteor.end() }
        try meteor.connect()
        let error = DDPError(.stub, "no", reason: "not today")
        try meteor.client.setStub("fail") { context, _ in
            _ = try? context.insert("players", .named("Eve"))
            return .failure(error)
        }
        var request = DDPRequest("fail")
        request.options.throwsStubErrors = true
        #expect(try meteor.client.call(request) == .failure(error))
        #expect(meteor.client.count(of: "players") == 0)
    }

    @Test func bothSidesDrawTheSameID() throws {
        let meteor = try DDPClientHarness()
        defer { meteor.end() }
        try meteor.makePlayers()
        try meteor.connect()
        let call = try meteor.client.insert(
            "players", .named("Eve"), meteor.reporting("insert")
        ).get()
        #expect(meteor.client.count(of: "players") == 1)
        try meteor.run(until: "insert: \(call.value.text)")
        let found = try meteor.server.control("find", ["collection": "players"]).arrayValue
        #expect(found?.last?["_id"]?.stringValue.map { .string($0) } == call.value)
        let id = call.value
        _ = try meteor.client.update("players", id: id, .naming("Fay"), meteor.reporting("update"))
        try meteor.run(until: "update: 1")
        #expect(try meteor.names() == ["Ada", "Fay"])
        _ = try meteor.client.remove("players", id: id, meteor.reporting("remove"))
        try meteor.run(until: "remove: 1")
        #expect(try meteor.names() == ["Ada"])
    }

    @Test(arguments: [true, false])
    func aLostConnectionContinues(resumes: Bool) throws {
        let meteor = try DDPClientHarness(["resumes": .bool(resumes)])
        defer { meteor.end() }
        try meteor.makePlayers()
        try meteor.connect()
        try meteor.subscribe("all")
        var changes: [ListChange] = []
        _ = try meteor.client.observe(Query(selector: .object(EJSONObject())), in: "players") {
            change, _ in
            changes += change.changes
        } ended: { _ in
        }
        try meteor.server.control("end", ["how": "reset"])
        try meteor.run { meteor.client.status != .connected }
        try meteor.rename("a", to: "Bea")
        _ = try meteor.client.insert("players", .named("Eve"), meteor.reporting("insert"))
        try meteor.run { meteor.lines.contains { $0.hasPrefix("insert: \"") } }
        try meteor.run { meteor.name(of: "a") == "Bea" }
        #expect(meteor.client.count(of: "players") == 2)
        // Nothing disappeared meanwhile.
        #expect(changes.count == 2)
    }

    @Test func sockJSIsUsedWhereWebSocketsAreRefused() throws {
        let meteor = try DDPClientHarness(["websocket": false])
        defer { meteor.end() }
        try meteor.makePlayers()
        try meteor.connect()
        try meteor.subscribe("all")
        #expect(meteor.name(of: "a") == "Ada")
        #expect(meteor.lines.prefix(2) == ["connecting", "waiting"])
    }

    @Test func aLoginIsRepeatedWithItsToken() throws {
        let meteor = try DDPClientHarness()
        defer { meteor.end() }
        try meteor.server.control("user", ["username": "ada", "password": "secret"])
        var token: DDPLoginToken?
        try meteor.client.setHandlers { handlers in
            let report = handlers.account
            handlers.account = { event in
                if case .store(let new) = event { token = new }
                report?(event)
            }
        }
        try meteor.connect()
        _ = try meteor.client.logIn(
            .login(user: "ada", password: "wrong"), meteor.reporting("wrong"))
        try meteor.run { meteor.lines.contains { $0.hasPrefix("wrong: server") } }
        #expect(meteor.client.userID == nil)
        _ = try meteor.client.logIn(
            .login(user: "ada", password: "secret"), meteor.reporting("login"))
        #expect(meteor.client.isLoggingIn)
        try meteor.run { !meteor.client.isLoggingIn }
        let user = try #require(meteor.client.userID)
        try meteor.run(until: "store \(user)")
        // Another client, after a restart of its program.
        let later = try DDPConnection(
            url: meteor.server.configuration.address.webSocket.text, on: meteor.server.loop)
        try later.setHandlers { $0.loadToken = { token } }
        #expect(later.userID == user)
        let other = try DDPConnection(url: "localhost", on: meteor.server.loop)
        try other.setHandlers { $0.loadToken = { token } }
        try other.configure { $0.tokenFile = "/tmp/token" }
        let error = #expect(throws: RealtimeError.self) { try other.connect() }
        #expect(error?.code == .invalidArgument)
        #expect(error?.message.contains("a token file") == true)
        other.close()
        let twice = try DDPConnection(url: "localhost", on: meteor.server.loop)
        try twice.configure { ($0.tokenFile, $0.documentFile) = ("/tmp/token", "/tmp/token") }
        let same = #expect(throws: RealtimeError.self) { try twice.connect() }
        #expect(same?.code == .invalidArgument)
        twice.close()
        try later.connect()
        try meteor.run { later.status == .connected }
        var loggedOut = false
        _ = try later.logOut(DDPCallHandlers(completed: { _ in loggedOut = true }))
        try meteor.run { loggedOut }
        #expect(later.userID == nil)
        later.close()
    }

    @Test func theBackgroundEndsTheConnection() throws {
        let meteor = try DDPClientHarness { $0.session.backgroundGrace = .zero }
        defer { meteor.end() }
        try meteor.connect()
        try meteor.client.enterBackground()
        try meteor.run(until: "offline")
        try meteor.client.enterForeground()
        try meteor.run { meteor.client.status == .connected }
    }

    @Test func garbageIsIgnoredAndAFrameThatIsTooLongEndsTheConnection() throws {
        let meteor = try DDPClientHarness { $0.receiveLimit = 4096 }
        defer { meteor.end() }
        try meteor.makePlayers()
        try meteor.connect()
        for text in ["garbage", "[1]", #"{"msg":"added","collection":7}"#, #"{"msg":"joke"}"#] {
            try meteor.server.control("send", ["text": .string(text)])
        }
        try meteor.subscribe("all")
        #expect(!meteor.lines.contains("waiting"))
        let long = #"{"msg":"joke","text":""# + String(repeating: "x", count: 5000) + "\"}"
        try meteor.server.control("send", ["text": .string(long)])
        try meteor.run(until: "waiting")
        try meteor.run { meteor.client.status == .connected }
    }

    @Test func aHandlerMayFreeTheClient() throws {
        let meteor = try DDPClientHarness()
        defer { meteor.end() }
        try meteor.client.setHandlers { handlers in
            handlers.status = { [unowned meteor] change in
                meteor.lines.append("\(change.status)")
                if change.status == .connected { meteor.client.close() }
            }
        }
        try meteor.client.connect()
        try meteor.run(until: "connected")
        #expect(throws: RealtimeError.self) { try meteor.client.connect() }
        #expect(throws: RealtimeError.self) { try meteor.client.call(DDPRequest("x")) }
    }

    @Test func severalSubscriptionsAreLoadedTogether() throws {
        let meteor = try DDPClientHarness()
        defer { meteor.end() }
        try meteor.makePlayers()
        try meteor.connect()
        var ends: [DDPError?] = []
        let loader = try meteor.client.load([("all", []), ("missing", [])]) { ends.append($0) }
        try meteor.run { !ends.isEmpty }
        #expect(ends[0]?.code == "404" && ends[0]?.codeIsNumber == true)
        #expect(meteor.name(of: "a") == "Ada")
        try meteor.client.closeLoader(loader)
        var isLoaded = false
        _ = try meteor.client.load([]) { isLoaded = $0 == nil }
        try meteor.run { isLoaded }
    }

    /// A handler gets what its thread causes after it has set it, and nothing before that, if the
    /// loop, which reports something else meanwhile, has not taken the handler over.
    @Test func aNewHandlerGetsWhatFollows() throws {
        let meteor = try DDPClientHarness()
        defer { meteor.end() }
        let client = meteor.client
        let (lines, done) = (Lines(), DispatchSemaphore(value: 0))
        try client.setStub("bad") { _, _ in .failure(DDPError("bad")) }
        let thread = Thread {
            _ = try? client.insert("players", .named("Bea"))
            try? client.setHandlers { handlers in
                handlers.changed = { _, _ in lines.add("new") }
                handlers.debug = { lines.add($0) }
            }
            _ = try? client.call(DDPRequest("bad"))
            _ = try? client.insert("players", .named("Cleo"))
            done.signal()
        }
        try client.setHandlers { handlers in
            handlers.changed = { _, _ in
                lines.add("old")
                guard lines.all.count == 1 else { return }
                thread.start()
                done.wait()
            }
        }
        _ = try client.insert("players", .named("Ada"))
        try meteor.run { lines.all.count == 4 }
        #expect(lines.all[...1] == ["old", "old"] && lines.all[3] == "new")
        #expect(lines.all[2].hasPrefix("[DDP] the stub of bad failed"))
    }

    @Test func otherThreadsReadAndWriteMeanwhile() throws {
        let meteor = try DDPClientHarness()
        defer { meteor.end() }
        try meteor.makePlayers()
        try meteor.connect()
        let handle = try meteor.subscribe("all")
        var completed = 0
        let client = meteor.client
        let handlers = DDPCallHandlers(completed: { _ in completed += 1 })
        let done = Flag()
        let thread = Thread {
            for number in 1...100 {
                let call = try? client.insert("players", .named("\(number)"), handlers).get()
                guard case .string(let id)? = call?.value, let id = DocumentID(wire: id) else {
                    Issue.record("no id")
                    break
                }
                // A write is seen at once by its thread.
                let key = DocumentKey(collection: "players", id: id)
                if client.document(key) == nil { Issue.record("\(number) is missing") }
            }
            done.set()
        }
        thread.start()
        try meteor.run { done.isSet && completed == 100 }
        #expect(try meteor.names().count == 101)
        #expect(client.count(of: "players") == 101)
        try client.stop(handle)
    }
}

/// Set by one thread, read by another.
private final class Flag: @unchecked Sendable {
    private let lock = NSLock()
    private var value = false

    var isSet: Bool { lock.withLock { value } }

    func set() { lock.withLock { value = true } }
}

/// Added by several threads.
private final class Lines: @unchecked Sendable {
    private let lock = NSLock()
    private var lines: [String] = []

    var all: [String] { lock.withLock { lines } }

    func add(_ line: String) { lock.withLock { lines.append(line) } }
}
