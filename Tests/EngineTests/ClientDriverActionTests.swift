import Session
import Testing

@testable import Engine

/// A machine whose actions are numbers, and a 0 once its time has come.
private struct Counting: ActionMachine {
    var actions: [Int] = []
    var wakeUp: Instant?

    mutating func nextAction() -> Int? { actions.isEmpty ? nil : actions.removeFirst() }

    mutating func timeReached(_ now: Instant) {
        wakeUp = nil
        actions.append(0)
    }
}

private struct Options {}

private struct Handlers: EndpointHandlers {}

private final class Driver: ClientDriver<Counting, Options, Handlers>, @unchecked Sendable {
    init(_ session: Counting, on loop: Loop) {
        super.init(session, Options(), on: loop)
    }

    var done: [Int] = []
    var ends = 0
    var isStopped = false
    /// Called inside an action.
    var then: (() -> Void)?

    override var mayAct: Bool { !isStopped }

    override func performNext() -> Bool {
        guard let action = session.nextAction() else { return false }
        done.append(action)
        then?()
        return true
    }

    override func closeNow() {
        super.closeNow()
        ends += 1
    }
}

@Test func actionsAreDoneInTheLoopsTurn() throws {
    let loop = try Loop()
    let driver = Driver(Counting(actions: [1, 2]), on: loop)
    driver.schedule()
    driver.schedule()
    #expect(driver.done == [])
    try loop.dispatch(timeout: 0)
    #expect(driver.done == [1, 2])
}

@Test func actionsCausedByAnActionFollowIt() throws {
    let loop = try Loop()
    let driver = Driver(Counting(actions: [1, 2]), on: loop)
    driver.then = { [unowned driver] in
        if driver.done == [1] { driver.session.actions.append(3) }
        driver.act()
        driver.schedule()
    }
    driver.act()
    #expect(driver.done == [1, 2, 3])
    driver.then = nil
    loop.close()
}

@Test func aStoppedDriverDoesNothing() throws {
    let loop = try Loop()
    let driver = Driver(Counting(actions: [1, 2]), on: loop)
    driver.then = { [unowned driver] in driver.isStopped = true }
    driver.act()
    #expect(driver.done == [1])
    driver.performAll()
    #expect(driver.done == [1, 2])
}

@Test func aDriverArmsTheTimerOfItsMachine() throws {
    let loop = try Loop()
    let driver = Driver(Counting(wakeUp: Loop.now() + .milliseconds(1)), on: loop)
    loop.perform { driver.act() }
    while driver.done.isEmpty { try loop.dispatch(timeout: -1) }
    #expect(driver.done == [0])
}

@Test func aResidentIsNotifiedWhenItsLoopEnds() throws {
    let loop = try Loop()
    let (driver, guest) = (Driver(Counting(), on: loop), Driver(Counting(), on: loop))
    driver.setResident(true)
    guest.setResident(true)
    guest.setResident(false)
    loop.close()
    #expect(driver.ends == 1)
    #expect(guest.ends == 0)
}
