/// How a document keeps calls and subscriptions waiting.
struct DDPStubHold: Sendable {
    /// Waiters with higher numbers wait for it; nil unless it is held.
    fileprivate var since: Int?
    /// The numbers of those that came while it was held, and wait until it is given back.
    fileprivate var waiters: [ClosedRange<Int>] = []
}

/// Calls and subscriptions that wait until documents are given back to the server. Each waits for
/// all documents that are held when it comes, also if they are not held any more, until no call
/// writes them: calls may have joined that were not sent (M12).
///
/// A document keeps the numbers of those that wait for it as a few ranges, and only its end looks
/// at the waiters themselves. So the memory grows with the number of documents and waiters, and
/// the time hardly faster.
struct DDPStubWaiters: Sendable {
    private var counts = DDPWaitCounts()
    private var lastWaiter = 0
    /// How many documents are held.
    private var heldCount = 0

    var isEmpty: Bool { counts.isEmpty }

    /// Nothing waits any more. The documents are still held.
    mutating func removeAll() { counts = DDPWaitCounts() }

    /// A call that was sent writes a document.
    mutating func hold(_ document: inout DDPStubHold) {
        guard document.since == nil else { return }
        document.since = lastWaiter
        heldCount += 1
    }

    /// No call that was sent on this connection writes the document any more, but others do. What
    /// comes later does not wait for it: they may not be sent before that is done.
    mutating func release(_ document: inout DDPStubHold) {
        guard let since = document.since else { return }
        document.since = nil
        heldCount -= 1
        if since < lastWaiter { document.waiters.append(since + 1...lastWaiter) }
    }

    /// - Returns: whether any document is held; otherwise nothing waits.
    mutating func wait(_ visibility: DDPVisibility) -> Bool {
        guard heldCount > 0 else { return false }
        lastWaiter += 1
        counts.append(lastWaiter, visibility, count: heldCount)
        return true
    }

    /// A document is given back: no call writes it.
    /// - Returns: what waited only for it, in the order in which it came.
    mutating func gaveBack(_ document: DDPStubHold) -> [DDPVisibility] {
        var document = document
        release(&document)
        for range in document.waiters { counts.lower(range) }
        return counts.takeFree()
    }

    /// The calls that wait, which do so no longer.
    mutating func takeCalls() -> [DDPVisibility] { counts.takeCalls() }
}
