import Session

/// When timers run that a flush has put off: at its end.
final class DDPPutOff {
    private let world: World
    /// When the flush began that is in progress.
    private var began: Instant?
    private var last: (began: Instant, ended: Instant)?

    init(_ world: World) { self.world = world }

    func observe(isFlushing: Bool) {
        if isFlushing {
            guard began == nil else { return }
            // Timers do not run between two flushes that follow each other.
            began = last?.ended == world.now ? last?.began : world.now
        } else if let began {
            last = (began, world.now)
            self.began = nil
        }
    }

    /// Whether timers may have been put off, and not have run yet.
    var isLate: Bool { began != nil || last?.ended == world.now }

    /// Whether what is due then may happen now.
    func isTime(_ due: Instant) -> Bool {
        if due == world.now { return true }
        guard due < world.now else { return false }
        if let began { return began <= due }
        return last.map { $0.began <= due && $0.ended == world.now } ?? false
    }
}
