package import Session

/// Drives an `ActionMachine` on its loop's thread: performs what the machine wants done in the
/// loop's turn, never inside a call of the user's, and arms its timer. What an action is, and what
/// comes in beside time, is the subclass's business.
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

    /// Performs the machine's next action. A callback in here may call anything; what follows from
    /// that is done after it. (The subclass takes the action from the machine, too: here, where the
    /// type of it is not known, it would be copied.)
    /// - Returns: false when there is none.
    func performNext() -> Bool { false }

    /// Called before the first action of a round, and after each.
    func acted() {}

    /// The loop is over; nothing of it runs afterwards.
    func loopClosed() {}

    // MARK: Driving

    /// Has `act` called in the loop's turn.
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

    /// Performs what is left, even inside an action.
    final func performAll() { while performNext() {} }

    /// Whether the loop keeps it, and tells it of its end.
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

    /// Nothing wakes it any more.
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
        session.timeReached(now)
        act()
    }

    /// It has no descriptor.
    final func ready(_ events: UInt32) {}
}
