/// How many bytes each connection may read in a turn of the loop, so that the turn stays short
/// however many are ready. By bytes, not by time: what has come in time must be seen in time.
enum ReadShare {
    /// What all of them may read, as long as each may read `least`.
    private static let total = 8 << 20
    private static let least = 64 << 10

    /// - Parameter count: how many may be ready to read.
    static func of(ready count: Int) -> Int {
        count <= total / Loop.bytesPerTurn ? Loop.bytesPerTurn : max(least, total / count)
    }
}
