import Session
import Synchronization
import Testing
import Wire

@testable import Engine

private struct Options: Equatable {
    var size = 1
}

private struct Handlers: EndpointHandlers {
    var told: (@Sendable () -> Void)?
    var ended: (@Sendable () -> Void)?
    var failed: (@Sendable () -> Void)?
}

/// Counts how many handlers still hold it.
private final class Token: Sendable {
    let count: Counter
    init(_ count: Counter) {
        self.count = count
        count.value.add(1, ordering: .relaxed)
    }
    deinit { count.value.subtract(1, ordering: .relaxed) }
}

private final class Counter: Sendable {
    let value = Atomic<Int>(0)
    var now: Int { value.load(ordering: .relaxed) }
}

private final class Thing: Endpoint<Options, Handlers>, @unchecked Sendable {
    override class var kind: String { "thing" }
}

private func endpoint(on loop: Loop) -> Thing { Thing(Options(), on: loop) }

/// The error that a call throws; nil for none.
private func error(_ call: () throws -> Void) -> RealtimeError? {
    do { try call() } catch { return error as? RealtimeError }
    return nil
}

@Test func optionsAreSetBeforeTheStart() throws {
    let thing = endpoint(on: try Loop())
    try thing.configure { $0.size = 2 }
    try thing.configure(once: true) { $0.size += 1 }
    let size = thing.options.read { $0.pointee.size }
    #expect(size == 3)
    let isFirst = thing.options.start()
    #expect(isFirst && thing.wasStarted)
    let isFirstAgain = thing.options.start()
    #expect(!isFirstAgain)
    let late = error { try thing.configure { $0.size = 9 } }
    #expect(late?.code == .state)
    #expect(late?.message == "an option must be set before the thing is started")
    #expect(error { try thing.configure(once: true) { $0.size = 9 } }?.code == .state)
    #expect(error { try thing.setReachability(nil) }?.code == .state)
    thing.takeConfiguration()
    #expect(thing.configuration.size == 3)
}

@Test func takenOptionsDoNotChange() throws {
    let thing = endpoint(on: try Loop())
    try thing.configure { $0.size = 2 }
    #expect(thing.configuration.size == 1)
    thing.takeConfiguration()
    #expect(thing.configuration.size == 2)
    try thing.configure { $0.size = 3 }
    #expect(thing.configuration.size == 2)
    thing.takeConfiguration()
    #expect(thing.configuration.size == 3)
}

@Test func aHandlerMayChangeOptions() throws {
    let loop = try Loop()
    let thing = endpoint(on: loop)
    _ = thing.options.start()
    loop.perform {
        try? thing.reconfiguring { () throws(RealtimeError) in
            try thing.configure { $0.size = 2 }
        }
        #expect(error { try thing.configure { $0.size = 9 } }?.code == .state)
        let once = error {
            try thing.reconfiguring { () throws(RealtimeError) in
                try thing.configure(once: true) { $0.size = 9 }
            }
        }
        #expect(once?.code == .state)
    }
    thing.takeConfiguration()
    #expect(thing.configuration.size == 2)
}

@Test func theCredentialsHandlerMayChangeOptions() throws {
    let thing = endpoint(on: try Loop())
    _ = thing.options.start()
    thing.options.awaitAnswer()
    try thing.configure { $0.size = 2 }
    thing.takeConfiguration()
    #expect(thing.configuration.size == 2)
    #expect(error { try thing.configure { $0.size = 9 } }?.code == .state)
}

@Test func anErrorInsideAChangeReachesItsCaller() throws {
    let thing = endpoint(on: try Loop())
    let inside = error {
        try thing.configure { (_) throws(RealtimeError) in throw RealtimeError(.invalidURL, "no") }
    }
    #expect(inside?.code == .invalidURL)
}

@Test func theReachabilityMustBelongToTheSameLoop() throws {
    let loop = try Loop()
    let thing = endpoint(on: loop)
    let other = try Reachability(on: Loop(), mode: .manual)
    let foreign = error { try thing.setReachability(other) }
    #expect(foreign?.code == .invalidArgument)
    #expect(foreign?.message == "the reachability and the thing belong to different loops")
    let own = try Reachability(on: loop, mode: .manual)
    try thing.setReachability(own)
    #expect(thing.chosenReachability === own)
}

@Test func changedHandlersAreTakenAndOldOnesReleased() throws {
    let loop = try Loop()
    let thing = endpoint(on: loop)
    let count = Counter()
    var token: Token? = Token(count)
    try thing.setHandlers { [token] in $0.told = { _ = token } }
    token = nil
    // Starting takes the handlers; each later change takes them again.
    #expect(thing.handlers.told == nil)
    thing.takeHandlers()
    _ = thing.options.start()
    #expect(thing.handlers.told != nil)
    #expect(count.now == 1)
    // Releasing the old handler may call us, so it must happen outside all locks.
    try thing.setHandlers { $0.told = nil }
    #expect(count.now == 0)
    try thing.setHandlers { $0.told = {} }
    thing.dropHandlers()
    #expect(thing.handlers.told == nil)
}

/// Calls back when its owner is released, like the destroy function of user data.
private final class Farewell: Sendable {
    private let call: @Sendable () -> Void
    init(_ call: @escaping @Sendable () -> Void) { self.call = call }
    deinit { call() }
}

private func holding(_ object: any AnyObject & Sendable) -> @Sendable () -> Void {
    { withExtendedLifetime(object) {} }
}

@Test func handlersCanBeSetWhileOldOnesAreReleased() throws {
    let thing = endpoint(on: try Loop())
    let count = Counter()
    func setAll(_ make: () -> any AnyObject & Sendable) throws {
        try thing.setHandlers {
            $0.told = holding(make())
            $0.ended = holding(make())
            $0.failed = holding(make())
        }
    }
    for _ in 0..<3 {
        // Each of three handlers sets all of them when it is released.
        try setAll { Farewell { try? thing.setHandlers { $0.told = holding(Token(count)) } } }
        try setAll { Farewell { try? thing.setHandlers { $0.failed = holding(Token(count)) } } }
        try setAll { Token(count) }
    }
    thing.dropHandlers()
    try thing.setHandlers { $0 = Handlers() }
    #expect(count.now == 0)
}

@Test func aClosedEndpointOrLoopDeliversNothing() throws {
    let loop = try Loop()
    let (thing, other) = (endpoint(on: loop), endpoint(on: loop))
    #expect(thing.mayDeliver)
    thing.gate.pause()
    #expect(!thing.mayDeliver && !thing.isClosed)
    thing.gate.close()
    #expect(thing.isClosed)
    #expect(error { try thing.checkOpen() }?.message == "the thing is closed")
    #expect(other.mayDeliver)
    loop.close()
    #expect(other.isClosed && !other.mayDeliver)
    #expect(error { try other.configure { $0.size = 2 } }?.code == .closed)
}

@Test func pausesAreIndependent() {
    let gate = DeliveryGate()
    // Whether each call changes anything for the loop. An array, since #expect would copy the gate.
    let changes = [
        gate.pause(.full), gate.pause(.wanted), gate.pause(.full), gate.resume(.full),
        gate.isPaused, gate.resume(.wanted), gate.isPaused, gate.resume(.wanted),
        gate.resume(.full),
    ]
    #expect(changes == [true, false, false, false, true, true, false, false, false])
}
