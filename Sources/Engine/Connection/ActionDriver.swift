package import Session

/// Drives an `ActionMachine` on its loop's thread. Performs the machine's actions in the loop's
/// turn, never inside a call from the user, and arms its timer. The subclass knows what the actions
/// are, and passes all events but time to the machine.
///
/// Unchecked because its fields belong to the loop's owner (see `Loop.enter`).
package class ActionDriver<
    Machine: ActionMachine, Configuration: Sendable, Handlers: EndpointHandlers
>: Endpoint<Configuration, Handlers>, LoopSource, LoopResident, TimerTarget, @unchecked Sendable {
    @exclusivity(unchecked) final var session: Machine
    private let timer = LoopTimer()
    @exclusivity(unchecked) private var armedAt: Instant?
    @exclusivity(unchecked) private var isScheduled = false
    @exclusivity(unchecked) private var isActing = false
    @exclusivity(unchecked) private var isResident = false

    init(
        _ session: Machine, _ configuration: Configuration, on loop: Loop
    ) {
        self.session = session
        super.init(configuration, on: loop)
    }

    // MARK: For subclasses

    /// Whether actions may be performed.
    var mayAct: Bool { true }

    /// Performs the machine's next action. Callbacks in it may call anything; the actions that
    /// result are performed after it. (The subclass also takes the action from the machine: here
    /// its type is unknown, so it would be copied.)
    /// - Returns: false if there is none.
    func performNext() -> Bool { false }

    /// Called before the first action of `act`, and after each.
    func acted() {}

    /// Takes over whether there is a network. To be called before a failure is passed to the
    /// machine: the loop reports a lost network only at the end of its turn.
    func noteNetwork() {}

    /// Called before the machine's `timeReached`.
    func willReachTime() {}

    /// The loop has ended and will run nothing more.
    func loopClosed() {}

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
        if mayAct { updateTimer() }
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
