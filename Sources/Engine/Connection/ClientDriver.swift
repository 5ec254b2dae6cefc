package import Session
import Wire

/// Drives a machine, and the life of its client on the loop, whatever the protocol.
///
/// The client begins with its first use: then it takes over the options and handlers, and observes
/// the network. It ends when it is freed, or with its loop. Meanwhile the machine's actions are
/// performed in the loop's turn, never inside a call from the user, and its timer is armed. The
/// subclass makes the machine, knows what its actions are, and passes all events but time to it.
///
/// Unchecked because its fields belong to the loop's owner (see `Loop.enter`).
package class ClientDriver<
    Machine: ActionMachine, Configuration: Sendable, Handlers: EndpointHandlers
>: Endpoint<Configuration, Handlers>, LoopSource, LoopResident, TimerTarget, ReachabilityObserver,
    @unchecked Sendable
{
    @exclusivity(unchecked) final var session: Machine
    private let timer = LoopTimer()
    @exclusivity(unchecked) private var armedAt: Instant?
    @exclusivity(unchecked) private var isScheduled = false
    @exclusivity(unchecked) private var isActing = false
    @exclusivity(unchecked) private var isResident = false
    @exclusivity(unchecked) final var reachability: Reachability?
    /// Nothing begins after this is set.
    @exclusivity(unchecked) final var hasBegun = false

    init(
        _ session: Machine, _ configuration: Configuration, on loop: Loop
    ) {
        self.session = session
        super.init(configuration, on: loop)
    }

    // MARK: For subclasses

    /// Makes the machine from the options, which were just taken over.
    func setUp() {}

    /// Whether actions may be performed.
    var mayAct: Bool { !isClosed }

    /// Performs the machine's next action. Callbacks in it may call anything; the actions that
    /// result are performed after it. (The subclass also takes the action from the machine: here
    /// its type is unknown, so it would be copied.)
    /// - Returns: false if there is none.
    func performNext() -> Bool { false }

    /// Whether `performNext` has returned false although there is more to do: in the next turn.
    var mustContinue: Bool { false }

    /// Called before the first action of `act`, and after each.
    func acted() { publishState() }

    /// Passes what the machine is to other threads.
    func publishState() {}

    /// Takes over whether there is a network. To be called before a failure is passed to the
    /// machine: the loop reports a lost network only at the end of its turn.
    func noteNetwork() {}

    /// Called before the machine's `timeReached`.
    func willReachTime() {}

    /// Stops receiving, or continues, as `gate` says.
    func pauseChanged() {}

    /// The client is closed: what other threads may see ends at once, before `closeNow`. Any
    /// thread.
    func closing() {}

    /// The end. The subclass also drops what it has, so that nothing retains it.
    func closeNow() {
        disarm()
        reachability?.remove(self)
        dropHandlers()
        setResident(false)
    }

    // MARK: Any thread

    /// Marks the client as used: the next job on the loop begins it.
    final func start() { _ = options.start() }

    /// Runs on the loop's thread, after `begin` once the client is used. Its actions follow in the
    /// loop's turn.
    /// - Parameter ifClosed: called instead if the client is closed by then.
    @inline(never)
    final func onLoop(
        _ work: @escaping () -> Void, ifClosed: @escaping () -> Void = {}
    ) {
        loop.perform { [self] in
            guard !isClosed else { return ifClosed() }
            // Another thread's job may run before that of the thread that called `start`.
            if wasStarted { begin() }
            work()
            publishState()
            schedule()
        }
    }

    /// Frees the client. No callback begins after this has returned; on the loop's thread one may
    /// still be running.
    package func close() {
        guard !loop.isForked, gate.close() else { return }
        closing()
        loop.perform { [self] in closeNow() }
    }

    final override func pause(_ pause: DeliveryGate.Pause) throws(RealtimeError) {
        try checkOpen()
        if gate.pause(pause) { onLoop { [self] in pauseChanged() } }
    }

    final override func resume(_ pause: DeliveryGate.Pause) throws(RealtimeError) {
        try checkOpen()
        if gate.resume(pause) { onLoop { [self] in pauseChanged() } }
    }

    // MARK: The loop's owner

    final var isPaused: Bool { gate.isPaused }

    final func begin() {
        guard !hasBegun else { return }
        hasBegun = true
        takeConfiguration()
        setUp()
        takeHandlers()
        reachability = chosenReachability
        reachability?.add(self)
        setResident(true)
        noteNetwork()
    }

    final func reachabilityChanged() {
        noteNetwork()
        act()
    }

    /// Nothing is reported once the loop is freed.
    final func loopClosed() {
        gate.close()
        closeNow()
    }

    // MARK: Driving

    /// Calls `act` in the loop's turn.
    final func schedule() {
        guard !isScheduled, !isActing else { return }
        isScheduled = true
        loop.schedule(self)
    }

    final func act() {
        guard !isActing, mayAct else { return }
        isActing = true
        acted()
        while mayAct, performNext() { acted() }
        isActing = false
        guard mayAct else { return }
        updateTimer()
        if mustContinue { schedule() }
    }

    /// Performs all remaining actions, even inside an action.
    final func performAll() { while performNext() {} }

    /// Sets whether the loop retains the object and notifies it when it ends.
    final func setResident(_ isWanted: Bool) {
        guard isWanted != isResident else { return }
        isResident = isWanted
        if isWanted { loop.addResident(self) } else { loop.removeResident(self) }
    }

    private func updateTimer() {
        let time = session.wakeUp
        guard time != armedAt else { return }
        armedAt = time
        if let time { loop.arm(timer, self, at: time) } else { loop.disarm(timer) }
    }

    /// Cancels the timer: nothing more is due.
    final func disarm() {
        armedAt = nil
        loop.disarm(timer)
    }

    final func turn() {
        isScheduled = false
        act()
    }

    final func timeReached(_ now: Instant) {
        armedAt = nil
        willReachTime()
        session.timeReached(now)
        act()
    }

    /// Not called: the object has no descriptor.
    final func ready(_ events: UInt32) {}
}
