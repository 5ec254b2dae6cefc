import CShims
import Glibc
import Session
import Synchronization
package import Wire

/// An event loop: one epoll descriptor that watches sockets, a timerfd and an eventfd. It runs only
/// when the program calls `dispatch` or `run`, or gives it a thread with `start`.
///
/// The loop knows no protocol. State that objects of one kind share is in `local`.
///
/// One thread at a time owns the loop: the one that dispatches, or one that makes a short call
/// between two turns. A thread claims it with `enter`; other threads queue jobs with `post`.
///
/// Unchecked because that claim, an atomic, guards the plain fields, which the compiler cannot see.
package final class Loop: @unchecked Sendable {
    /// The epoll descriptor. It is readable when `dispatch` has work to do.
    let descriptor: Int32
    private let timerDescriptor: Int32
    let wakeDescriptor: Int32

    // The claim and the job queue; see LoopClaim.swift.
    let owner = Atomic<UInt>(0)
    let jobs = Mutex<[Job]>([])
    let jobCount = Atomic<Int>(0)
    let wakePending = Atomic<Bool>(false)
    // For edge-triggered hosts; see LoopEdge.swift.
    let isHosted = Atomic<Bool>(false)
    let missedDispatch = Atomic<Bool>(false)
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
    /// True inside the call of `close` that tears the loop down: callbacks that report the end may
    /// still run.
    private var isEnding = false

    // State that only the owner may touch.
    @exclusivity(unchecked) private var timers = LoopTimers()
    @exclusivity(unchecked) private var timerArmedAt: Instant?
    @exclusivity(unchecked) private var sources = SourceTable()
    @exclusivity(unchecked) private var scheduled: [any LoopSource] = []
    @exclusivity(unchecked) private var scheduledNow: [any LoopSource] = []
    @exclusivity(unchecked) private var residents: [ObjectIdentifier: any LoopResident] = [:]
    @exclusivity(unchecked) private var multiplexer: (any LoopMultiplexer)?
    @exclusivity(unchecked) private var isMultiplexerScheduled = false
    /// True if descriptors may be ready that this turn has not handled.
    @exclusivity(unchecked) var mayBeReady = false
    /// True if the source whose turn it is has read all that there was.
    @exclusivity(unchecked) private var isDrained = false
    private let readyEvents: UnsafeMutablePointer<shim_ready>
    private static let eventsPerTurn: Int32 = 128

    /// epoll tokens are tokens of sources, or one of these. Tokens of the multiplexer's sockets
    /// have bit 62 set.
    private static let timerToken = UInt64.max
    private static let wakeToken = UInt64.max - 1
    private static let multiplexerBit: UInt64 = 1 << 62

    /// How many bytes one connection may read in one turn at most, so that none starves the others.
    static let bytesPerTurn = ReadShare.most
    /// How many bytes each connection may read in this turn.
    @exclusivity(unchecked) private(set) var readShare = Loop.bytesPerTurn
    /// How long the messages of each connection may take in this turn.
    @exclusivity(unchecked) private(set) var timeShare = ReadShare.time(ready: 1)
    /// Counts the turns, from 1.
    @exclusivity(unchecked) private(set) var turnNumber: UInt64 = 1

    package convenience init() throws(RealtimeError) {
        shim_fork_watch()
        self.init(descriptor: shim_epoll_create())
        let isMade =
            wakeDescriptor >= 0
            && shim_epoll_add_signal(descriptor, timerDescriptor, Loop.timerToken) == 0
            && shim_epoll_add_signal(descriptor, wakeDescriptor, Loop.wakeToken) == 0
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
        // If the loop was not closed, timers are still armed. The multiplexer's timer retains its
        // target, which owns the timer: break that cycle.
        timers.removeAll()
    }

    // MARK: Driving

    /// Waits up to `timeout` milliseconds (-1: without limit) and handles everything that is ready.
    package func dispatch(timeout: Int32) throws(RealtimeError) {
        guard timeout >= -1 else {
            throw RealtimeError(
                .invalidArgument, "timeout_ms is \(timeout), -1 or more is expected")
        }
        try beginDispatch()
        defer { endDispatch() }
        try turn(timeout)
    }

    /// Dispatches until `stop` is called.
    package func run() throws(RealtimeError) { try run(as: nil) }

    /// - Parameter thread: the loop's own thread, if this runs on it; `stopAndWait` ends it as
    ///   well.
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
        mayBeReady = count == Loop.eventsPerTurn
        counters.turns.grow(by: 1)
        counters.events.grow(by: UInt64(count))
        let ready = Int(count) + scheduled.count
        readShare = ReadShare.of(ready: ready)
        timeShare = ReadShare.time(ready: ready)
        turnNumber += 1
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
        case Loop.timerToken: timerArmedAt = nil
        case Loop.wakeToken:
            // Before the jobs run: a thread that posts from now on wakes us again. An exchange,
            // because it orders the posting threads' earlier writes before it on every processor.
            _ = wakePending.exchange(false, ordering: .sequentiallyConsistent)
        case let token where token & Loop.multiplexerBit != 0:
            multiplexer?.isReady(Int32(truncatingIfNeeded: token), ready.events)
        case let token:
            isDrained = false
            sources[token]?.ready(ready.events)
            if !isDrained || ready.events & PollEvents.peerEnded != 0 { mayBeReady = true }
        }
    }

    private func runTimers() {
        guard let earliest = timers.earliest else { return }
        let now = Loop.now()
        guard earliest <= now else { return }
        // A response that has arrived is in time, however late this turn is. Report it before
        // timers fire.
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
        let batch = jobs.withLock { exchange(&$0, with: []) }
        counters.jobs.grow(by: UInt64(batch.count))
        for job in batch {
            // Count down one at a time, so that what a job posts cannot overtake the jobs after it.
            if !isClosed.load(ordering: .acquiring) { job.run() }
            jobCount.subtract(1, ordering: .releasing)
        }
    }

    private func runScheduled() {
        guard !scheduled.isEmpty else { return }
        swap(&scheduled, &scheduledNow)
        for source in scheduledNow {
            // A source that gets no turn any more must still be notified of the loop's end.
            if isClosed.load(ordering: .relaxed) { scheduled.append(source) } else { source.turn() }
        }
        scheduledNow.removeAll(keepingCapacity: true)
    }

    /// Runs after the scheduled sources, so that requests which they start go out in this turn.
    private func runMultiplexer() {
        guard isMultiplexerScheduled else { return }
        isMultiplexerScheduled = false
        if !isClosed.load(ordering: .relaxed) { multiplexer?.turn() }
    }

    private var hasScheduled: Bool { !scheduled.isEmpty || isMultiplexerScheduled }

    /// Keeps an earlier setting even if no timer needs it any more. Most timers are limits that are
    /// not reached, each replaced by the next. One needless turn costs less than two system calls
    /// for each of them.
    private func armTimerDescriptor() {
        guard let earliest = timers.earliest, timerArmedAt.map({ earliest < $0 }) ?? true else {
            return
        }
        timerArmedAt = earliest
        // 0 would disarm.
        _ = shim_timerfd_set(timerDescriptor, max(earliest.nanoseconds, 1))
    }

    /// Call before giving up the claim: makes the descriptor readable if there is work.
    func settle() {
        armTimerDescriptor()
        let wasSignalled = hasScheduled && wake()
        if mayBeReady, !wasSignalled { renewEdgeIfReady() }
    }

    /// Makes the descriptor readable. Any thread. Repeated calls until the next turn have no
    /// effect.
    /// - Returns: whether this call had one.
    @discardableResult func wake() -> Bool {
        if wakePending.exchange(true, ordering: .sequentiallyConsistent) { return false }
        shim_eventfd_signal(wakeDescriptor)
        return true
    }

    // MARK: For objects on the loop; owner only. After the teardown these do nothing: a source
    // would never run, and would keep alive the loop that keeps the source alive.

    /// Calls `source.turn()` once, at the end of this turn or in the next.
    func schedule(_ source: any LoopSource) {
        if !isTornDown { scheduled.append(source) }
    }

    /// Calls the multiplexer's `turn` once, at the end of this turn or of the next.
    func scheduleMultiplexer() { isMultiplexerScheduled = true }

    /// Makes `multiplexer` take part in each turn until the loop ends.
    func attach(_ multiplexer: any LoopMultiplexer) {
        if !isTornDown { self.multiplexer = multiplexer }
    }

    func arm(_ timer: LoopTimer, _ target: any TimerTarget, at deadline: Instant) {
        if !isTornDown { timers.arm(timer, target, at: deadline) }
    }

    func disarm(_ timer: LoopTimer) { timers.disarm(timer) }

    /// Retains `resident` and notifies it when the loop ends.
    func addResident(_ resident: some LoopResident) {
        if !isTornDown { residents[ObjectIdentifier(resident)] = resident }
    }

    /// To be called in a source's `ready` once a read has returned less than it asked for. epoll
    /// then reports what comes later by itself.
    func noteDrained() { isDrained = true }

    func removeResident(_ resident: some LoopResident) {
        residents[ObjectIdentifier(resident)] = nil
    }

    /// Watches a descriptor. Returns the token for `watch` and `remove`.
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

    /// Changes the watched events. Without any events the descriptor is removed from epoll, which
    /// would otherwise report a hang-up again and again; the loop still keeps its source.
    func watch(
        _ token: UInt64, descriptor socket: Int32, from old: UInt32, to events: UInt32
    ) throws(RealtimeError) {
        let result =
            if events == 0 {
                shim_epoll_remove(descriptor, socket)
            } else if old == 0 {
                shim_epoll_add(descriptor, socket, events, token)
            } else {
                modify(socket, events, token)
            }
        guard result == 0 else { throw Loop.systemError("watching a socket", errno) }
    }

    private func modify(_ socket: Int32, _ events: UInt32, _ token: UInt64) -> Int32 {
        // If the last turn reported the socket, it counts as ready already, and nothing reports
        // that it is ready for another event.
        mayBeReady = true
        return shim_epoll_modify(descriptor, socket, events, token)
    }

    func remove(_ token: UInt64, descriptor socket: Int32) {
        _ = shim_epoll_remove(descriptor, socket)
        sources.remove(token)
    }

    /// The epoll token for one of the multiplexer's sockets.
    static func multiplexerToken(_ socket: Int32) -> UInt64 {
        multiplexerBit | UInt64(UInt32(bitPattern: socket))
    }

    // MARK: The end

    /// Ends the loop: after this call it runs nothing more. Any thread.
    package func close() {
        guard !isForked, !isClosed.exchange(true, ordering: .sequentiallyConsistent) else {
            return
        }
        detachThread()
        if !finishClosing(inCall: true) {
            // The thread that owns the loop tears it down: at the end of this turn, or in
            // `endCall`.
            wake()
        }
    }

    /// Tears down a closed loop, once. Returns false while another thread owns the loop.
    @discardableResult func finishClosing(inCall: Bool = false) -> Bool {
        guard claimForCall() else { return false }
        isEnding = inCall
        tearDown()
        isEnding = false
        releaseClaim()
        return true
    }

    /// Owner only: whether callbacks may begin. None may once `close` has returned.
    var mayCall: Bool { isEnding || !isClosed.load(ordering: .acquiring) }

    private func tearDown() {
        if isTornDown { return }
        isTornDown = true
        let jobs = jobs.withLock { exchange(&$0, with: []) }
        jobCount.subtract(jobs.count, ordering: .releasing)
        let callers = callerTimers.withLock { $0.removeAll() }
        timers.removeAll()
        // Residents first: they may still have something to send by their sources.
        let residents = residents.values
        self.residents = [:]
        for resident in residents { resident.loopClosed() }
        for source in sources.all { source.loopClosed() }
        let waiting = scheduled
        scheduled = []
        for source in waiting { source.loopClosed() }
        multiplexer?.close()
        multiplexer = nil
        isMultiplexerScheduled = false
        locals.removeAll()
        // User data is destroyed here, while no lock is held.
        withExtendedLifetime((jobs, callers)) {}
    }
}
