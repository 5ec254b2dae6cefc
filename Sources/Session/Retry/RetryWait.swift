/// The wait for an attempt: for its time, and for a network to make it by (R9).
package struct RetryWait: Equatable, Sendable {
    /// When the attempt is due; nil while there is no network.
    package private(set) var due: Instant?

    /// - Parameter delay: nil when there is no network.
    package init(_ delay: Duration?, now: Instant) { due = delay.map { now + $0 } }

    /// There is a network, or none, to reach the peer by. One that comes back shortens the wait,
    /// whatever it was: within a second, spread.
    /// - Parameter random: uniform in [0, 1).
    /// - Returns: whether `due` is another.
    package mutating func setReachable(_ isReachable: Bool, now: Instant, random: Double) -> Bool {
        switch (due, isReachable) {
        case (nil, true): due = now + .onceOnline(random: random)
        case (_?, false): due = nil
        case (nil, false), (_?, true): return false
        }
        return true
    }
}
