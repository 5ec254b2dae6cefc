/// Decides which of a host's addresses are tried, and when (RFC 8305 §5): the families alternate,
/// and each address starts 250 ms after the one before, or as soon as one fails. The first that
/// connects wins. Addresses are known by their position in the resolver's answer.
package struct AddressRace {
    /// The time between the starts of two attempts (RFC 8305 §8).
    package static let stagger = Duration.milliseconds(250)
    /// The most addresses of a host that are tried.
    package static let mostAddresses = 32
    /// The most causes that an error names.
    private static let mostCauses = 4

    package struct Failure: Equatable {
        package let position: Int
        /// An `errno`.
        package let cause: Int32
    }

    /// The positions in the order in which they are tried.
    package let order: [Int]
    private var started = 0
    private var startedAt: Instant?
    /// An attempt has failed since the last start.
    private var hasLost = false
    package private(set) var failures: [Failure] = []

    /// - Parameter families: the family of each address, best first (RFC 6724).
    package init(_ families: [IPAddress.Family]) {
        let families = families.prefix(AddressRace.mostAddresses)
        let first = families.indices.filter { families[$0] == families.first }
        let others = families.indices.filter { families[$0] != families.first }
        var order: [Int] = []
        for index in 0..<max(first.count, others.count) {
            if index < first.count { order.append(first[index]) }
            if index < others.count { order.append(others[index]) }
        }
        self.order = order
    }

    /// The position of the address to try now; nil for none. Call it until it returns nil, and
    /// again at `wakeUp` and after a failure.
    package mutating func next(_ now: Instant) -> Int? {
        guard started < order.count, isDue(now) else { return nil }
        hasLost = false
        startedAt = now
        started += 1
        return order[started - 1]
    }

    private func isDue(_ now: Instant) -> Bool {
        guard let startedAt else { return true }
        return hasLost || now >= startedAt + AddressRace.stagger
    }

    /// When the next address is due; nil if none is left.
    package var wakeUp: Instant? {
        guard started < order.count else { return nil }
        return startedAt.map { $0 + AddressRace.stagger }
    }

    /// An address that was tried has failed.
    package mutating func failed(_ position: Int, _ cause: Int32) {
        failures.append(Failure(position: position, cause: cause))
        hasLost = true
    }

    /// Whether every address has failed.
    package var isLost: Bool { failures.count == order.count }

    /// The addresses that were tried and have not failed.
    package var pending: [Int] {
        order.prefix(started).filter { position in
            !failures.contains { $0.position == position }
        }
    }

    /// The failure that says most about the host, if all have failed. A machine without IPv6, for
    /// example, fails for half of the addresses, whatever the host does.
    /// - Parameter isLocal: whether an `errno` is about this machine's network.
    package func cause(isLocal: (Int32) -> Bool) -> Int32 {
        (failures.first { !isLocal($0.cause) } ?? failures.first)?.cause ?? 0
    }

    /// Why all failed: "connection refused (192.0.2.1:80), timed out (192.0.2.2:80)".
    /// - Parameter describe: an error and the position of its address, as text.
    package func reason(_ describe: (Failure) -> String) -> String {
        let named = failures.prefix(AddressRace.mostCauses).map(describe)
        let others = failures.count - named.count
        return named.joined(separator: ", ") + (others > 0 ? " and \(others) more" : "")
    }
}
