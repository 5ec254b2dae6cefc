/// What waits for documents, in the order in which it came, and for how many documents each waits.
///
/// A binary tree over the waiters has the least count of each part. So to count one document less
/// for a range of waiters, and to find those that wait for none, takes logarithmic time.
struct DDPWaitCounts: Sendable {
    private struct Waiter: Sendable {
        /// Ascending.
        let number: Int
        let visibility: DDPVisibility
    }

    private var waiters: [Waiter] = []
    /// How many of them still wait.
    private var waitingCount = 0
    /// How many waiters the tree has place for: a power of two. Node 1 is the root, nodes 2n and
    /// 2n + 1 are below node n, and the waiters are the nodes from `places`.
    private var places = 0
    /// The least count below a node, without what the nodes above it have in `added`.
    private var least: [Int] = []
    /// What counts in addition for all waiters below a node.
    private var added: [Int] = []

    /// The count of a place where nothing waits, about.
    private static let nobody = Int.max / 2
    private static let fewestPlaces = 16

    var isEmpty: Bool { waitingCount == 0 }

    /// - Parameters:
    ///   - number: higher than those before.
    ///   - count: for how many documents it waits, at least one.
    mutating func append(_ number: Int, _ visibility: DDPVisibility, count: Int) {
        if waiters.count == places { rebuild(present()) }
        let node = places + waiters.count
        waiters.append(Waiter(number: number, visibility: visibility))
        waitingCount += 1
        least[node] = count - addedAbove(node)
        updateAbove(node)
    }

    /// Those with these numbers wait for one document less.
    mutating func lower(_ numbers: ClosedRange<Int>) {
        let first = position(of: numbers.lowerBound)
        let end = position(of: numbers.upperBound + 1)
        if first < end { lower(first..<end, below: 1, 0..<places) }
    }

    /// Takes those that wait for no document any more.
    mutating func takeFree() -> [DDPVisibility] {
        guard !isEmpty else { return [] }
        var free: [DDPVisibility] = []
        takeFree(below: 1, addedAbove: 0, &free)
        waitingCount -= free.count
        if isEmpty { self = DDPWaitCounts() }
        return free
    }

    /// Takes the calls, which wait no longer, whatever their counts are.
    mutating func takeCalls() -> [DDPVisibility] {
        var calls: [DDPVisibility] = []
        var others: [(waiter: Waiter, count: Int)] = []
        for one in present() {
            switch one.waiter.visibility {
            case .method: calls.append(one.waiter.visibility)
            case .subscription: others.append(one)
            }
        }
        rebuild(others)
        return calls
    }

    // MARK: The tree

    private mutating func lower(_ range: Range<Int>, below node: Int, _ part: Range<Int>) {
        guard range.lowerBound > part.lowerBound || range.upperBound < part.upperBound else {
            least[node] -= 1
            added[node] -= 1
            return
        }
        let middle = part.lowerBound + part.count / 2
        if range.lowerBound < middle { lower(range, below: 2 * node, part.lowerBound..<middle) }
        if range.upperBound > middle {
            lower(range, below: 2 * node + 1, middle..<part.upperBound)
        }
        update(node)
    }

    private mutating func takeFree(
        below node: Int, addedAbove above: Int, _ free: inout [DDPVisibility]
    ) {
        guard least[node] + above <= 0 else { return }
        guard node < places else {
            least[node] = DDPWaitCounts.nobody
            free.append(waiters[node - places].visibility)
            return
        }
        takeFree(below: 2 * node, addedAbove: above + added[node], &free)
        takeFree(below: 2 * node + 1, addedAbove: above + added[node], &free)
        update(node)
    }

    private mutating func update(_ node: Int) {
        least[node] = min(least[2 * node], least[2 * node + 1]) + added[node]
    }

    private mutating func updateAbove(_ node: Int) {
        var node = node / 2
        while node > 0 {
            update(node)
            node /= 2
        }
    }

    private func addedAbove(_ node: Int) -> Int {
        var sum = 0
        var node = node / 2
        while node > 0 {
            sum += added[node]
            node /= 2
        }
        return sum
    }

    /// The position of the first waiter with this number or a higher one.
    private func position(of number: Int) -> Int {
        var range = 0..<waiters.count
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            if waiters[middle].number < number {
                range = middle + 1..<range.upperBound
            } else {
                range = range.lowerBound..<middle
            }
        }
        return range.lowerBound
    }

    /// Those that still wait.
    private func present() -> [(waiter: Waiter, count: Int)] {
        waiters.indices.compactMap { position in
            let count = least[places + position] + addedAbove(places + position)
            return count < DDPWaitCounts.nobody / 2 ? (waiters[position], count) : nil
        }
    }

    /// Makes the tree of these, with places for as many others.
    private mutating func rebuild(_ all: [(waiter: Waiter, count: Int)]) {
        self = DDPWaitCounts()
        places = DDPWaitCounts.fewestPlaces
        while places < 2 * all.count { places *= 2 }
        waiters = all.map { $0.waiter }
        waitingCount = all.count
        least = Array(repeating: DDPWaitCounts.nobody, count: 2 * places)
        added = Array(repeating: 0, count: 2 * places)
        for (position, one) in all.enumerated() { least[places + position] = one.count }
        for node in (1..<places).reversed() { update(node) }
    }
}
