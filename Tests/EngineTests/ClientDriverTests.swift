import Session
import Testing
import Wire

@testable import Engine

private struct Machine: ActionMachine {
    var wakeUp: Instant? { nil }

    mutating func timeReached(_ now: Instant) {}
}

private struct Options {}

private struct Handlers: EndpointHandlers {}

/// Notes what its life consists of.
private final class Client: ClientDriver<Machine, Options, Handlers>, @unchecked Sendable {
    var life: [String] = []

    init(on loop: Loop) { super.init(Machine(), Options(), on: loop) }

    override func setUp() { life.append("set up") }
    override func noteNetwork() { life.append("network") }
    override func pauseChanged() { life.append(isPaused ? "paused" : "resumed") }
    override func closing() { life.append("closing") }

    override func closeNow() {
        super.closeNow()
        life.append("closed")
    }
}

/// How a client of any protocol lives on its loop.
struct ClientDriverTests {
    @Test func aClientBeginsOnceWithItsFirstUse() throws {
        let loop = try Loop()
        let client = Client(on: loop)
        client.onLoop { client.life.append("too early") }
        client.start()
        for _ in 1...2 { client.onLoop { client.life.append("work") } }
        #expect(client.life == ["too early", "set up", "network", "work", "work"])
        loop.close()
    }

    @Test func aChangedNetworkIsNotedUntilTheEnd() throws {
        let loop = try Loop()
        let reachability = try Reachability(on: loop, mode: .manual)
        let client = Client(on: loop)
        try client.setReachability(reachability)
        client.start()
        client.onLoop {}
        client.life = []
        try reachability.setOnline(false)
        try loop.dispatch(timeout: 0)
        #expect(client.life == ["network"])
        client.close()
        try reachability.setOnline(true)
        try loop.dispatch(timeout: 0)
        #expect(client.life == ["network", "closing", "closed"])
        loop.close()
    }

    @Test func onlyTheFirstAndTheLastReasonToPauseCount() throws {
        let loop = try Loop()
        let client = Client(on: loop)
        try client.pause()
        client.pauseForRoom()
        try client.resume()
        #expect(client.life == ["paused"])
        client.resumeWithRoom()
        #expect(client.life == ["paused", "resumed"])
        loop.close()
    }

    @Test func aClosedClientDoesNothingMore() throws {
        let loop = try Loop()
        let client = Client(on: loop)
        client.start()
        client.close()
        client.close()
        client.onLoop {
            client.life.append("work")
        } ifClosed: {
            client.life.append("refused")
        }
        #expect(client.life == ["closing", "closed", "refused"])
        #expect(throws: RealtimeError.self) { try client.pause() }
        loop.close()
    }

    @Test func theEndOfTheLoopEndsAClientThatHasBegun() throws {
        let loop = try Loop()
        let client = Client(on: loop)
        client.start()
        client.onLoop {}
        try loop.dispatch(timeout: 0)
        loop.close()
        #expect(client.life == ["set up", "network", "closed"])
        client.close()
        #expect(client.life == ["set up", "network", "closed"])
    }
}
