/// How many bytes each connection may read in a turn of the loop, so that the turn stays short
/// however many are ready. By bytes, not by time: what has come in time must be seen in time.
enum ReadShare {
    /// What one may read in a turn.
    static let most = 1 << 20
    /// What all of them may read, as long as each may read `least`.
    private static let total = 8 << 20
    private static let least = 64 << 10

    /// - Parameter count: how many may be ready to read.
    static func of(ready count: Int) -> Int {
        count <= total / most ? most : max(least, total / count)
    }
}
