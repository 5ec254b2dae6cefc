import Session

/// Performs a machine's actions in their order, as the engine's `ClientDriver` does, and fails a
/// machine that spins.
final class ActionTurn {
    private let world: World
    private let limit: Int
    private var isActing = false
    private var time = Instant(nanoseconds: 0)
    private var count = 0

    /// - Parameter limit: of the actions while no time passes.
    init(_ world: World, limit: Int) {
        self.world = world
        self.limit = limit
    }

    /// - Returns: false inside a turn, which performs the new actions itself.
    func run<Action>(_ next: () -> Action?, _ perform: (Action) -> Void) -> Bool {
        guard !isActing else { return false }
        isActing = true
        while world.violation == nil, let action = next() {
            if time != world.now { (time, count) = (world.now, 0) }
            count += 1
            world.require(count < limit, "spins: \(count) actions and no time passes")
            perform(action)
        }
        isActing = false
        return true
    }
}
