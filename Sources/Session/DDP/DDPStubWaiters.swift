import Documents

/// How a document keeps calls and subscriptions waiting.
struct DDPStubHold: Sendable {
    fileprivate struct Hold: Sendable {
        let connection: Int
        let number: Int
        /// Waiters with higher numbers wait for the document.
        let after: Int
    }

    /// One for each connection on which it was held; none after it was released.
    fileprivate var holds: [Hold] = []
    /// Subscriptions that wait for it although it is not held any more.
    fileprivate var waiters: [Int] = []

    mutating func forgetWaiters() { waiters = [] }
}

/// Calls and subscriptions that wait until documents are given back to the server. Each waits for
/// all documents that are held when it comes.
///
/// A later waiter waits for the same documents as an earlier one, or for more, so the earliest is
/// the first to be free. The documents are a queue in the order in which they were held; one that
/// was given back stays in the queue until it is the first. So the time and the memory for many
/// documents and many waiters grow with their sum, not with their product.
struct DDPStubWaiters: Sendable {
    private struct Held: Sendable {
        let key: DocumentKey
        let hold: DDPStubHold.Hold
    }

    private struct Waiter: Sendable {
        let number: Int
        let visibility: DDPVisibility
    }

    /// The documents that were held on one connection, and the waiters that came meanwhile.
    private struct Era: Sendable {
        let connection: Int
        var held = Queue<Held>()
        var waiters = Queue<Waiter>()
    }

    /// The last one is that of the present connection. Others end with their last waiter.
    private var eras = [Era(connection: 1)]
    private var connection = 1
    private var lastHold = 0
    private var lastWaiter = 0
    /// For how many documents each waiter waits that are not held any more.
    private var more: [Int: Int] = [:]
    /// The waiters that wait only for such documents.
    private var late: [Int: DDPVisibility] = [:]

    typealias Holds = (DocumentKey) -> DDPStubHold?

    var isEmpty: Bool { late.isEmpty && eras.allSatisfy { $0.waiters.isEmpty } }

    /// Nothing waits any more. The documents are still held.
    mutating func removeAll() {
        eras.removeFirst(eras.count - 1)
        eras[0].waiters = Queue()
        more = [:]
        late = [:]
    }

    /// A call that was sent writes a document.
    mutating func hold(_ key: DocumentKey, _ document: inout DDPStubHold) {
        guard document.holds.last?.connection != connection else { return }
        document.holds.removeAll { hold in !eras.contains { $0.connection == hold.connection } }
        lastHold += 1
        let hold = DDPStubHold.Hold(connection: connection, number: lastHold, after: lastWaiter)
        document.holds.append(hold)
        eras[eras.count - 1].held.append(Held(key: key, hold: hold))
    }

    mutating func connectionLost() {
        connection += 1
        if eras[eras.count - 1].waiters.isEmpty { eras.removeLast() }
        eras.append(Era(connection: connection))
    }

    /// - Returns: whether any document is held; otherwise nothing waits.
    mutating func wait(_ visibility: DDPVisibility, _ holds: Holds) -> Bool {
        let era = eras.count - 1
        dropEnded(era, holds)
        guard !eras[era].held.isEmpty else { return false }
        lastWaiter += 1
        eras[era].waiters.append(Waiter(number: lastWaiter, visibility: visibility))
        return true
    }

    /// A document is not held any more, but not given back either, because calls that were not sent
    /// write it. Calls do not wait for it any longer; subscriptions do.
    mutating func releaseCalls(_ document: inout DDPStubHold) {
        for hold in document.holds {
            guard let era = eras.first(where: { $0.connection == hold.connection }) else {
                continue
            }
            for waiter in era.waiters where waiter.number > hold.after {
                guard case .subscription = waiter.visibility else { continue }
                more[waiter.number, default: 0] += 1
                document.waiters.append(waiter.number)
            }
        }
        document.holds = []
    }

    /// A document is given back.
    /// - Returns: what waited only for it.
    mutating func gaveBack(_ hold: DDPStubHold) -> [DDPVisibility] {
        var free: [DDPVisibility] = []
        for number in hold.waiters {
            guard let count = more[number] else { continue }
            more[number] = count == 1 ? nil : count - 1
            if count == 1, let visibility = late.removeValue(forKey: number) {
                free.append(visibility)
            }
        }
        return free
    }

    /// What need not wait any longer, in the order in which it came.
    mutating func takeFree(_ holds: Holds) -> [DDPVisibility] {
        var free: [DDPVisibility] = []
        for era in eras.indices {
            dropEnded(era, holds)
            let limit = eras[era].held.first?.hold.after ?? Int.max
            while let waiter = eras[era].waiters.first, waiter.number <= limit {
                eras[era].waiters.removeFirst()
                if more[waiter.number] == nil {
                    free.append(waiter.visibility)
                } else {
                    late[waiter.number] = waiter.visibility
                }
            }
        }
        if eras.count > 1 {
            let last = eras.removeLast()
            eras.removeAll { $0.waiters.isEmpty }
            eras.append(last)
        }
        return free
    }

    private mutating func dropEnded(_ era: Int, _ holds: Holds) {
        while let first = eras[era].held.first {
            if isHeld(first, holds) { return }
            eras[era].held.removeFirst()
        }
    }

    private func isHeld(_ held: Held, _ holds: Holds) -> Bool {
        holds(held.key)?.holds.contains { $0.number == held.hold.number } ?? false
    }

    /// Whether most documents in the queue of this connection were given back, but not the first.
    func isScattered(documents: Int) -> Bool {
        eras[eras.count - 1].held.count > 2 * documents + 64
    }

    mutating func compact(_ holds: Holds) {
        let last = eras.count - 1
        var held = eras[last].held
        held.removeAll { !isHeld($0, holds) }
        eras[last].held = held
    }
}

/// A list that grows at its end and shrinks at its beginning.
private struct Queue<Element: Sendable>: Sendable, Sequence {
    private var elements: [Element] = []
    private var start = 0

    var count: Int { elements.count - start }
    var isEmpty: Bool { count == 0 }
    var first: Element? { isEmpty ? nil : elements[start] }

    mutating func append(_ element: Element) { elements.append(element) }

    mutating func removeFirst() {
        start += 1
        guard start > 32, start * 2 > elements.count else { return }
        elements.removeFirst(start)
        start = 0
    }

    mutating func removeAll(where isGone: (Element) -> Bool) {
        elements = elements[start...].filter { !isGone($0) }
        start = 0
    }

    func makeIterator() -> IndexingIterator<ArraySlice<Element>> {
        elements[start...].makeIterator()
    }
}
