import Glibc
import Session
import Synchronization
import Testing
import Wire

@testable import Engine

/// Records of callbacks; loops call back on their own threads.
private final class Notes: Sendable {
    private let items = Mutex<[String]>([])
    func add(_ item: String) { items.withLock { $0.append(item) } }
    var all: [String] { items.withLock { $0 } }
}

@Test func jobsRunInTheOrderPosted() throws {
    let loop = try Loop()
    let notes = Notes()
    for index in 0..<5 { try loop.post { notes.add("\(index)") } }
    #expect(notes.all.isEmpty)
    try loop.dispatch(timeout: 0)
    #expect(notes.all == ["0", "1", "2", "3", "4"])
}

@Test func aJobThatPostsWaitsForTheNextTurn() throws {
    let loop = try Loop()
    let notes = Notes()
    try loop.post {
        notes.add("first")
        try? loop.post { notes.add("second") }
    }
    try loop.dispatch(timeout: 0)
    #expect(notes.all == ["first"])
    try loop.dispatch(timeout: 0)
    #expect(notes.all == ["first", "second"])
}

@Test func dispatchInsideACallbackIsReentrant() throws {
    let loop = try Loop()
    let codes = Mutex<[RealtimeError.Code]>([])
    @Sendable func note(_ call: () throws(RealtimeError) -> Void) {
        do throws(RealtimeError) { try call() } catch { codes.withLock { $0.append(error.code) } }
    }
    try loop.post {
        note { () throws(RealtimeError) in try loop.dispatch(timeout: 0) }
        note { () throws(RealtimeError) in try loop.run() }
        note { () throws(RealtimeError) in try loop.stopAndWait() }
    }
    try loop.dispatch(timeout: 0)
    #expect(codes.withLock { $0 } == [.reentrant, .reentrant, .reentrant])
}

@Test func dispatchWhileAnotherThreadRunsIsBusy() throws {
    let loop = try Loop()
    try loop.start()
    // The end of the job shows that the thread dispatches.
    let ran = Atomic<Bool>(false)
    try loop.post { ran.store(true, ordering: .releasing) }
    while !ran.load(ordering: .acquiring) { sched_yield() }
    #expect(throws: RealtimeError.self) { try loop.dispatch(timeout: 0) }
    #expect(throws: RealtimeError.self) { try loop.start() }
    try loop.stopAndWait()
    try loop.dispatch(timeout: 0)
}

@Test func aLoopStartsAgainAfterItWasStopped() throws {
    let loop = try Loop()
    for _ in 0..<3 {
        let ran = Atomic<Bool>(false)
        try loop.start()
        try loop.post { ran.store(true, ordering: .releasing) }
        while !ran.load(ordering: .acquiring) { sched_yield() }
        try loop.stopAndWait()
    }
}

@Test func startAndStopFromTwoThreadsDoNotDeadlock() async throws {
    let loop = try Loop()
    async let starting: Void = {
        for _ in 0..<2000 { try? loop.start() }
    }()
    async let stopping: Void = {
        for _ in 0..<2000 { try? loop.stopAndWait() }
    }()
    _ = await (starting, stopping)
    try loop.stopAndWait()
    // The loop has no thread any more, so this one may dispatch.
    try loop.dispatch(timeout: 0)
}

@Test func aStopBeforeRunMakesItReturnAtOnce() throws {
    let loop = try Loop()
    try loop.stop()
    try loop.run()
}

@Test func aConnectionReleasesItsHandlersAtItsEnd() throws {
    final class Held: Sendable {}
    let loop = try Loop()
    let connection = try WebSocketConnection(url: "ws://127.0.0.1:1/", on: loop)
    weak var held: Held?
    var closed = 0
    do {
        let payload = Held()
        held = payload
        try connection.setHandlers { handlers in
            handlers.close = { _ in
                withExtendedLifetime(payload) { closed += 1 }
            }
        }
    }
    try connection.start()
    while closed == 0 { try loop.dispatch(timeout: 1000) }
    try loop.dispatch(timeout: 0)
    #expect(held == nil && closed == 1)
}

@Test func timersFireInTheOrderOfTheirTimes() throws {
    let loop = try Loop()
    let notes = Notes()
    _ = try loop.addTimer(after: .milliseconds(20), every: .zero) {
        notes.add("late")
        try? loop.stop()
    }
    _ = try loop.addTimer(after: .milliseconds(5), every: .zero) { notes.add("early") }
    _ = try loop.addTimer(after: .zero, every: .zero) { notes.add("now") }
    try loop.run()
    #expect(notes.all == ["now", "early", "late"])
}

@Test func aRepeatedTimerFiresUntilItIsCancelled() throws {
    let loop = try Loop()
    let count = Mutex(0)
    let id = Mutex<UInt64>(0)
    let made = try loop.addTimer(after: .milliseconds(1), every: .milliseconds(1)) {
        let now = count.withLock { count -> Int in
            count += 1
            return count
        }
        if now == 3 {
            try? loop.cancelTimer(id.withLock { $0 })
            try? loop.stop()
        }
    }
    id.withLock { $0 = made }
    try loop.run()
    #expect(count.withLock { $0 } == 3)
    #expect(throws: RealtimeError.self) { try loop.cancelTimer(made) }
}

@Test func aCancelledTimerReleasesItsClosure() throws {
    final class Held: Sendable {}
    let loop = try Loop()
    weak var weakHeld: Held?
    let id: UInt64
    do {
        let held = Held()
        weakHeld = held
        id = try loop.addTimer(after: .seconds(60), every: .zero) { withExtendedLifetime(held) {} }
    }
    #expect(weakHeld != nil)
    try loop.cancelTimer(id)
    #expect(weakHeld == nil)
}

@Test func aTimerThatReAddsItselfDoesNotHoldTheTurn() throws {
    let loop = try Loop()
    let count = Mutex(0)
    @Sendable func again() {
        count.withLock { $0 += 1 }
        _ = try? loop.addTimer(after: .zero, every: .zero) { again() }
    }
    _ = try loop.addTimer(after: .zero, every: .zero) { again() }
    try loop.dispatch(timeout: 10)
    #expect(count.withLock { $0 } == 1)
    try loop.dispatch(timeout: 10)
    #expect(count.withLock { $0 } == 2)
    // The remaining timer holds the loop.
    loop.close()
}

@Test func theDescriptorIsReadableWhenThereIsWork() throws {
    let loop = try Loop()
    func isReadable() -> Bool {
        var entry = pollfd(fd: loop.descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) == 1
    }
    #expect(!isReadable())
    try loop.post {}
    #expect(isReadable())
    try loop.dispatch(timeout: 0)
    #expect(!isReadable())
}

@Test func aClosedLoopRefusesAndReleases() throws {
    final class Held: Sendable {}
    let loop = try Loop()
    weak var weakHeld: Held?
    do {
        let held = Held()
        weakHeld = held
        try loop.post { withExtendedLifetime(held) {} }
        _ = try loop.addTimer(after: .zero, every: .zero) { withExtendedLifetime(held) {} }
    }
    loop.close()
    #expect(weakHeld == nil)
    #expect(throws: RealtimeError.self) { try loop.dispatch(timeout: 0) }
    #expect(throws: RealtimeError.self) { try loop.post {} }
}

@Test func aLoopClosedDuringACallEndsAfterTheCall() throws {
    final class Payload: Sendable {}
    weak var held: Payload?
    let loop = try Loop()
    do {
        let payload = Payload()
        held = payload
        _ = try loop.addTimer(after: .seconds(60), every: .zero) {
            withExtendedLifetime(payload) {}
        }
    }
    #expect(held != nil)
    // Like user data that frees the loop when it is destroyed.
    loop.perform { loop.close() }
    #expect(held == nil)
}

@Test func aLoopClosedWhileAnotherThreadDispatchesAlwaysEnds() async throws {
    final class Payload: Sendable {}
    for _ in 0..<500 {
        weak var held: Payload?
        let loop = try Loop()
        do {
            let payload = Payload()
            held = payload
            _ = try loop.addTimer(after: .seconds(60), every: .zero) {
                withExtendedLifetime(payload) {}
            }
        }
        async let dispatching: Void = {
            // Otherwise closing never begins if this task has the only thread.
            while (try? loop.dispatch(timeout: 0)) != nil { await Task.yield() }
        }()
        async let closing: Void = loop.close()
        _ = await (dispatching, closing)
        #expect(held == nil)
    }
}

@Test func postsFromManyThreadsAllRunOnceAndInOrder() async throws {
    let loop = try Loop()
    try loop.start()
    let notes = Notes()
    await withTaskGroup(of: Void.self) { group in
        for thread in 0..<4 {
            group.addTask {
                for index in 0..<500 { try? loop.post { notes.add("\(thread) \(index)") } }
            }
        }
    }
    try loop.post { notes.add("done") }
    while notes.all.last != "done" { sched_yield() }
    try loop.stopAndWait()
    for thread in 0..<4 {
        let mine = notes.all.filter { $0.hasPrefix("\(thread) ") }
        #expect(mine == (0..<500).map { "\(thread) \($0)" })
    }
}

@Test func theHeapReturnsTimersInOrder() {
    final class Target: TimerTarget {
        let deadline: UInt64
        init(_ deadline: UInt64) { self.deadline = deadline }
        func timeReached(_ now: Instant) {}
    }
    var heap = TimerHeap()
    var generator = SystemRandomNumberGenerator()
    var timers: [(LoopTimer, UInt64)] = []
    for _ in 0..<500 {
        let deadline = UInt64.random(in: 0..<1000, using: &generator)
        let timer = LoopTimer()
        heap.arm(timer, Target(deadline), at: Instant(nanoseconds: deadline))
        timers.append((timer, deadline))
    }
    var left = timers.map(\.1)
    for index in stride(from: 0, to: 500, by: 3) {
        heap.disarm(timers[index].0)
        left.remove(at: left.firstIndex(of: timers[index].1) ?? 0)
    }
    var order: [UInt64] = []
    while let target = heap.popDue(Instant(nanoseconds: 1000)) as? Target {
        order.append(target.deadline)
    }
    #expect(order == left.sorted())
}
