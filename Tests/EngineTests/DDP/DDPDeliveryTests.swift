import Documents
import Session
import Testing
import Wire

@testable import Engine

/// Notifications that are passed on in several turns.
struct DDPDeliveryTests {
    /// A client with a live query, whose program writes more documents at once than are passed on
    /// in one turn: its handler takes as long as a turn may.
    private func writing(_ meteor: DDPClientHarness, _ count: Int) throws {
        _ = try meteor.client.write { _ in
            (0..<count).map { DocumentWrite.insert("players", .named("\($0)")) }
        }
    }

    /// Lasts longer than a turn may.
    private func spend() {
        let end = Loop.now() + .milliseconds(25)
        while Loop.now() < end {}
    }

    @Test func aLongNotificationTakesSeveralTurns() throws {
        let meteor = try DDPClientHarness()
        defer { meteor.end() }
        var (changes, live, turns): (Int, [Bool], Int) = (0, [], 0)
        try meteor.client.setHandlers { handlers in
            handlers.changed = { piece, _ in
                #expect(piece.isFirst == (changes == 0))
                changes += piece.changes.count
                #expect(piece.isLast == (changes == 1000))
                spend()
            }
        }
        _ = try meteor.client.observeInPieces(try Query(selector: [:]), in: "players") {
            piece, isInitial, isLast, _ in
            guard !isInitial else { return }
            #expect(changes == 1000)
            live += Array(repeating: false, count: piece.steps.count - 1) + [isLast]
            spend()
        }
        try meteor.server.loop.dispatch(timeout: 0)
        try writing(meteor, 1000)
        var others = 0
        while live.count < 1000 {
            // Other work of the loop is done in between.
            meteor.server.loop.enqueue { others += 1 }
            try meteor.server.loop.dispatch(timeout: 0)
            turns += 1
            try #require(turns < 100)
        }
        #expect(turns > 4 && others == turns)
        #expect(live.filter { $0 }.count == 1 && live.last == true)
    }

    @Test func inALongNotificationHandlersKeepTheirPromises() throws {
        for deed in ["close", "remove", "replace", "stop"] {
            let meteor = try DDPClientHarness()
            defer { meteor.end() }
            let client = meteor.client
            var (changes, live): (Int, Int) = (0, 0)
            var query: LiveQueryID?
            try client.setHandlers { handlers in
                handlers.changed = { piece, isWanted in
                    changes += piece.changes.count
                    #expect(isWanted())
                    switch deed {
                    case "close": client.close()
                    case "remove": try? client.setHandlers { $0.changed = nil }
                    case "replace":
                        try? client.setHandlers { $0.changed = { _, _ in changes = -1 } }
                    default: if let query { client.stopObserving(query) }
                    }
                    #expect(isWanted() == (deed == "stop"))
                    spend()
                }
            }
            query = try client.observeInPieces(try Query(selector: [:]), in: "players") {
                piece, isInitial, _, _ in
                if !isInitial { live += piece.steps.count }
            }
            try meteor.server.loop.dispatch(timeout: 0)
            try writing(meteor, 1000)
            for _ in 0..<20 { try meteor.server.loop.dispatch(timeout: 0) }
            #expect(changes == (deed == "stop" ? 1000 : 256), "\(deed)")
            #expect(live == (deed == "close" || deed == "stop" ? 0 : 1000), "\(deed)")
        }
    }

    /// What the server sends while documents are passed on waits, and so do other reports.
    @Test func messagesWaitForALongNotification() throws {
        let meteor = try DDPClientHarness()
        defer { meteor.end() }
        try meteor.makePlayers()
        try meteor.connect()
        let many: [JSONValue] = (0..<600).map { ["_id": .string("p\($0)"), "name": "Bob"] }
        try meteor.server.control(
            "insert", ["collection": "players", "many": .array(many)])
        var (changes, ready): (Int, Bool) = (0, false)
        try meteor.client.setHandlers { handlers in
            handlers.changed = { piece, _ in
                #expect(!ready)
                changes += piece.changes.count
                spend()
            }
        }
        _ = try meteor.client.subscribe(
            "all", [], DDPSubscriptionHandlers(ready: { ready = true }))
        try meteor.run { ready }
        #expect(changes == 601)
    }
}
