import CShims
import Glibc
import Session
import Synchronization
package import Wire

/// An event loop: one epoll descriptor over sockets, a timerfd and an eventfd. It does nothing by
/// itself; whoever embeds it drives it with `dispatch` or `run`, or gives it a thread with `start`.
///
/// It knows no protocol. Each kind of objects keeps what its objects share in `local`.
///
/// One thread at a time owns the loop's world: the one that dispatches, or one that makes a short
/// call between two turns. `enter` claims it, `post` is the door for everyone else.
///
/// Unchecked because that claim, an atomic, guards the plain fields; the compiler cannot see it.
package final class Loop: @unchecked Sendable {
    /// The epoll descriptor; readable when `dispatch` has work to do.
    package let descriptor: Int32
    private let timerDescriptor: Int32
    private let wakeDescriptor: Int32

    // The door; see LoopDoor.swift.
    let owner = Atomic<UInt>(0)
    let jobs = Mutex<[Job]>([])
    let jobCount = Atomic<Int>(0)
    private let wakePending = Atomic<Bool>(false)
    let callerTimers = Mutex(CallerTimers())
    let isClosed = Atomic<Bool>(false)
    let stopRequested = Atomic<Bool>(false)
    let thread = Mutex<LoopThread?>(nil)
    let joining = Mutex<Void>(())
    let forkGeneration: UInt32
    let counters = LoopCounters()
    let locals = LoopLocals()
    /// Owner only.
    private(set) var isTornDown = false
    /// Inside the call of `close` that tears down: what is told at the end may be told still.
    private var isEnding = false

    // The world: owner only.
    @exclusivity(unchecked) private var timers = LoopTimers()
    @exclusivity(unchecked) private var timerArmedAt: Instant?
    @exclusivity(unchecked) private var sources = SourceTable()
    @exclusivity(unchecked) private var scheduled: [any LoopSource] = []
    @exclusivity(unchecked) private var scheduledNow: [any LoopSource] = []
    @exclusivity(unchecked) private var residents: [ObjectIdentifier: any LoopResident] = [:]
    @exclusivity(unchecked) private var multiplexer: (any LoopMultiplexer)?
    @exclusivity(unchecked) private var isMultiplexerScheduled = false
    private let readyEvents: UnsafeMutablePointer<shim_ready>
    private static let eventsPerTurn: Int32 = 128

    /// epoll tokens: a source's, or one of these; a socket of the multiplexer's has bit 62 set.
    private static let timerToken = UInt64.max
    private static let wakeToken = UInt64.max - 1
    private static let multiplexerBit: UInt64 = 1 << 62

    /// What one connection may read in one turn, so that none starves the others.
    static let bytesPerTurn = ReadShare.most
    /// What each may read in this turn.
    @exclusivity(unchecked) private(set) var readShare = Loop.bytesPerTurn

    package convenience init() throws(RealtimeError) {
        shim_fork_watch()
        self.init(descriptor: shim_epoll_create())
        let isMade =
            wakeDescriptor >= 0
            && shim_epoll_add(descriptor, timerDescriptor, PollEvents.readable, Loop.timerToken)
                == 0
            && shim_epoll_add(descriptor, wakeDescriptor, PollEvents.readable, Loop.wakeToken)
                == 0
        guard isMade else { throw Loop.systemError("making a loop's descriptors", errno) }
    }

    private init(descriptor: Int32) {
        self.descriptor = descriptor
        timerDescriptor = descriptor < 0 ? -1 : shim_timerfd_create()
        wakeDescriptor = timerDescriptor < 0 ? -1 : shim_eventfd_create()
        forkGeneration = shim_fork_generation()
        readyEvents = .allocate(capacity: Int(Loop.eventsPerTurn))
    }

    deinit {
        for descriptor in [wakeDescriptor, timerDescriptor, descriptor] where descriptor >= 0 {
            _ = Glibc.close(descriptor)
        }
        readyEvents.deallocate()
        // One that was not closed: the multiplexer's timer keeps its target, which owns the timer.
        timers.removeAll()
    }

    // MARK: Driving

    /// Waits up to `timeout` milliseconds, -1 for ever, and does all that is ready.
    package func dispatch(timeout: Int32) throws(RealtimeError) {
        guard timeout >= -1 else {
            throw RealtimeError(
                .invalidArgument, "timeout_ms is \(timeout), -1 or more is expected")
        }
        try beginDispatch()
        defer { endDispatch() }
        try turn(timeout)
    }

    /// Dispatches until `stop`.
    package func run() throws(RealtimeError) { try run(as: nil) }

    /// - Parameter thread: the loop's own thread, which `stopAndWait` ends, too.
    func run(as thread: LoopThreadState?) throws(RealtimeError) {
        try beginDispatch()
        defer { endDispatch() }
        while !stopRequested.exchange(false, ordering: .acquiringAndReleasing),
            thread?.mustEnd.load(ordering: .acquiring) != true
        {
            try turn(-1)
            if isClosed.load(ordering: .acquiring) {
                throw RealtimeError(.closed, "the loop was freed while it ran")
            }
        }
    }

    private func turn(_ timeout: Int32) throws(RealtimeError) {
        let wait = hasScheduled ? 0 : timeout
        let count = shim_epoll_wait(descriptor, readyEvents, Loop.eventsPerTurn, wait)
        guard count >= 0 else { throw Loop.systemError("waiting for events", errno) }
        counters.turns.grow(by: 1)
        counters.events.grow(by: UInt64(count))
        let ready = Int(count) + scheduled.count
        readShare = ReadShare.of(ready: ready)
        multiplexer?.beginTurn(ready: ready)
        for index in 0..<Int(count) where !isClosed.load(ordering: .relaxed) {
            handle(readyEvents[index])
        }
        multiplexer?.handleReady()
        runTimers()
        runJobs()
        runScheduled()
        runMultiplexer()
        if isClosed.load(ordering: .acquiring) { tearDown() }
        armTimerDescriptor()
    }

    private func handle(_ ready: shim_ready) {
        switch ready.token {
        case Loop.timerToken:
            shim_counter_drain(timerDescriptor)
            timerArmedAt = nil
        case Loop.wakeToken:
            // Cleared before the jobs run: whoever posts from now on wakes us again.
            shim_counter_drain(wakeDescriptor)
            // An exchange: it orders what the posters did before it on every machine.
            _ = wakePending.exchange(false, ordering: .sequentiallyConsistent)
        case let token where token & Loop.multiplexerBit != 0:
            multiplexer?.isReady(Int32(truncatingIfNeeded: token), ready.events)
        case let token: sources[token]?.ready(ready.events)
        }
    }

    private func runTimers() {
        guard let earliest = timers.earliest else { return }
        let now = Loop.now()
        guard earliest <= now else { return }
        // An answer that has come is in time, however late the loop's turn is.
        multiplexer?.finish()
        let limit = timers.limit(at: now, multiplexer?.progress)
        while !isClosed.load(ordering: .relaxed),
            let target = timers.popDue(now, ownUntil: limit)
        {
            target.timeReached(now)
        }
    }

    private func runJobs() {
        guard jobCount.load(ordering: .acquiring) > 0 else { return }
        let batch = jobs.withLock { queue -> [Job] in
            defer { queue = [] }
            return queue
        }
        counters.jobs.grow(by: UInt64(batch.count))
        for job in batch {
            // One at a time, so that a job's own posts cannot overtake its successors.
            if !isClosed.load(ordering: .acquiring) { job.run() }
            jobCount.subtract(1, ordering: .releasing)
        }
    }

    private func runScheduled() {
        guard !scheduled.isEmpty else { return }
        swap(&scheduled, &scheduledNow)
        for source in scheduledNow {
            // What has no turn any more must hear of the end.
            if isClosed.load(ordering: .relaxed) { scheduled.append(source) } else { source.turn() }
        }
        scheduledNow.removeAll(keepingCapacity: true)
    }

    /// Behind what was scheduled, so that what that begins goes out in this turn.
    private func runMultiplexer() {
        guard isMultiplexerScheduled else { return }
        isMultiplexerScheduled = false
        if !isClosed.load(ordering: .relaxed) { multiplexer?.turn() }
    }

    private var hasScheduled: Bool { !scheduled.isEmpty || isMultiplexerScheduled }

    /// One that is too early stays: most timers are limits that are not reached, one behind
    /// another, and a turn for nothing, once, costs less than two system calls for each.
    private func armTimerDescriptor() {
        guard let earliest = timers.earliest, timerArmedAt.map({ earliest < $0 }) ?? true else {
            return
        }
        timerArmedAt = earliest
        // 0 would disarm.
        _ = shim_timerfd_set(timerDescriptor, max(earliest.nanoseconds, 1))
    }

    /// Before the claim is given up: what was scheduled must make the descriptor readable.
    func settle() {
        if hasScheduled { wake() }
        armTimerDescriptor()
    }

    /// Makes the descriptor readable. Any thread; coalesced until the next turn.
    func wake() {
        if !wakePending.exchange(true, ordering: .sequentiallyConsistent) {
            shim_eventfd_signal(wakeDescriptor)
        }
    }

    // MARK: For what lives on the loop; owner only. A loop that is torn down takes nothing more:
    // it would never run, and would keep the loop that it keeps alive itself.

    /// Has `source.turn()` called once, at the end of this turn or in the next.
    func schedule(_ source: any LoopSource) {
        if !isTornDown { scheduled.append(source) }
    }

    /// Gives the multiplexer its turn at the end of this turn, or of the next.
    func scheduleMultiplexer() { isMultiplexerScheduled = true }

    /// Has `multiplexer` take part in each turn, until the loop's end.
    func attach(_ multiplexer: any LoopMultiplexer) {
        if !isTornDown { self.multiplexer = multiplexer }
    }

    func arm(_ timer: LoopTimer, _ target: any TimerTarget, at deadline: Instant) {
        if !isTornDown { timers.arm(timer, target, at: deadline) }
    }

    func disarm(_ timer: LoopTimer) { timers.disarm(timer) }

    /// Keeps `resident`, and tells it of the loop's end.
    func addResident(_ resident: some LoopResident) {
        if !isTornDown { residents[ObjectIdentifier(resident)] = resident }
    }

    func removeResident(_ resident: some LoopResident) {
        residents[ObjectIdentifier(resident)] = nil
    }

    /// Watches a descriptor; the token is for `modify` and `remove`.
    func add(
        _ source: any LoopSource, descriptor socket: Int32, events: UInt32
    ) throws(RealtimeError) -> UInt64 {
        try checkUsable()
        let token = sources.add(source)
        guard shim_epoll_add(descriptor, socket, events, token) == 0 else {
            let cause = errno
            sources.remove(token)
            throw Loop.systemError("watching a socket", cause)
        }
        return token
    }

    /// Changes what is watched. With no events at all the descriptor is taken out of epoll, which
    /// would report one that hung up without end; its source stays known to the loop.
    func watch(
        _ token: UInt64, descriptor socket: Int32, from old: UInt32, to events: UInt32
    ) throws(RealtimeError) {
        let result =
            if events == 0 {
                shim_epoll_remove(descriptor, socket)
            } else if old == 0 {
                shim_epoll_add(descriptor, socket, events, token)
            } else {
                shim_epoll_modify(descriptor, socket, events, token)
            }
        guard result == 0 else { throw Loop.systemError("watching a socket", errno) }
    }

    func remove(_ token: UInt64, descriptor socket: Int32) {
        _ = shim_epoll_remove(descriptor, socket)
        sources.remove(token)
    }

    /// What epoll says for a socket of the multiplexer's.
    static func multiplexerToken(_ socket: Int32) -> UInt64 {
        multiplexerBit | UInt64(UInt32(bitPattern: socket))
    }

    // MARK: The end

    /// Ends the loop: nothing of it runs any more. Any thread.
    package func close() {
        guard !isForked, !isClosed.exchange(true, ordering: .sequentiallyConsistent) else {
            return
        }
        detachThread()
        if !finishClosing(inCall: true) {
            // Whoever holds it tears down: at the end of this turn, or in `endCall`.
            wake()
        }
    }

    /// Tears down a closed loop, once; false while someone holds it.
    @discardableResult func finishClosing(inCall: Bool = false) -> Bool {
        guard claimForCall() else { return false }
        isEnding = inCall
        tearDown()
        isEnding = false
        giveBack()
        return true
    }

    /// Owner only: whether callbacks may begin, which none may once `close` has returned.
    var mayCall: Bool { isEnding || !isClosed.load(ordering: .acquiring) }

    private func tearDown() {
        if isTornDown { return }
        isTornDown = true
        let jobs = jobs.withLock { queue -> [Job] in
            defer { queue = [] }
            return queue
        }
        jobCount.subtract(jobs.count, ordering: .releasing)
        let callers = callerTimers.withLock { $0.removeAll() }
        timers.removeAll()
        for source in sources.all { source.loopClosed() }
        let waiting = scheduled
        scheduled = []
        for source in waiting { source.loopClosed() }
        let residents = residents.values
        self.residents = [:]
        for resident in residents { resident.loopClosed() }
        multiplexer?.close()
        multiplexer = nil
        isMultiplexerScheduled = false
        locals.removeAll()
        // User data is destroyed here, outside every lock.
        withExtendedLifetime((jobs, callers)) {}
    }
}
