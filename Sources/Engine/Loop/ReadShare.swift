/// How many bytes each connection may read in a turn of the loop, so that the turn stays short
/// however many are ready. The limit is in bytes, not time, because data that arrived in time must
/// be read in time.
enum ReadShare {
    /// The most that one connection may read in a turn.
    static let most = 1 << 20
    /// The most that all of them may read together, unless each gets only `least`.
    private static let total = 8 << 20
    private static let least = 64 << 10

    /// - Parameter count: how many connections may be ready to read.
    static func of(ready count: Int) -> Int {
        count <= total / most ? most : max(least, total / count)
    }
}
