package import Session
import Wire

/// The life of a client on its loop, whatever its protocol. It begins with its first use: then it
/// takes over the options and handlers, and observes the network. It ends when it is freed, or with
/// its loop. The subclass makes the machine and performs its actions.
///
/// Unchecked because its fields belong to the loop's owner (see `Loop.enter`).
package class ClientDriver<
    Machine: ActionMachine, Configuration: Sendable, Handlers: EndpointHandlers
>: ActionDriver<Machine, Configuration, Handlers>, ReachabilityObserver, @unchecked Sendable {
    @exclusivity(unchecked) final var reachability: Reachability?
    /// Nothing begins after this is set.
    @exclusivity(unchecked) final var hasBegun = false

    // MARK: For subclasses

    /// Makes the machine from the options, which were just taken over.
    func setUp() {}

    /// Passes what the machine is to other threads.
    func publishState() {}

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

    override var mayAct: Bool { !isClosed }

    override func acted() { publishState() }

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
    final override func loopClosed() {
        gate.close()
        closeNow()
    }
}
