/// How many bytes each connection may read in a turn of the loop, and how long its messages may
/// take, so that the turn stays short however many are ready. Reading has no limit of time, because
/// data that arrived in time must be read in time.
enum ReadShare {
    /// The most that one connection may read in a turn.
    static let most = 1 << 20
    /// The most that all of them may read together, unless each gets only `least`.
    private static let total = 8 << 20
    private static let least = 64 << 10
    /// How long the messages of all of them may take together.
    private static let totalTime = Duration.milliseconds(20)

    /// - Parameter count: how many connections may be ready to read.
    static func of(ready count: Int) -> Int {
        count <= total / most ? most : max(least, total / count)
    }

    static func time(ready count: Int) -> Duration { totalTime / max(1, count) }
}
