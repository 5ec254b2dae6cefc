import Documents
import Wire

/// What a flush has still to do.
struct DDPFlush: Sendable {
    enum Stage: Sendable {
        /// Messages that were held back are processed.
        case held
        /// Documents are applied.
        case documents
        /// The documents are there, or are refused. What waited for them follows.
        case over
    }

    var stage = Stage.held
    /// Those that were processed are left empty.
    var held: [DDPMessage] = []
    var processed = 0
    /// The documents of an earlier run are replaced.
    var becomesCurrent = false
    var hasApplied = false
    /// The message that has begun the flush, if it has an effect that follows.
    var cause: DDPMessage?
}

// A flush applies what the server has sent, in one transaction, and does what waited for that.
//
// Almost every flush is done in the call that begins it. A long one, as after a reconnection, would
// hold up all else on the loop. It is done in parts: the driver calls `continueFlush` until its
// turn has lasted long enough, and again in the turns that follow, and receives no messages
// meanwhile. A call that uses the documents, or ends the connection, finishes the flush at once. So
// the order of everything is that of a flush in one part.
extension DDPSession {
    /// Whether a flush is in progress.
    package var isFlushing: Bool { flushing != nil }

    /// Begins a flush. If nothing follows in the same call, it need not be finished at once.
    mutating func flush(_ now: Instant) {
        settle(now)
        flushDue = nil
        flushBy = nil
        // The old documents stay until all of the new ones are there.
        guard !quiescence.isResetting || !quiescence.isWaiting else { return }
        var flush = DDPFlush()
        // The login of a lost connection may have been the last that was waited for.
        if !quiescence.isWaiting {
            quiescence.due = nil
            flush.held = quiescence.takeHeld()
        }
        flushing = flush
        continueFlush(now)
    }

    /// The same for what must be there before anything else happens.
    mutating func flushAtOnce(_ now: Instant) {
        flush(now)
        settle(now)
    }

    /// Does the next part of the flush that is in progress.
    package mutating func continueFlush(_ now: Instant) {
        var budget = StepBudget(flushSteps)
        if advanceFlush(&budget) { endFlush(now) }
    }

    /// Finishes the flush that is in progress.
    mutating func settle(_ now: Instant) {
        guard isFlushing else { return }
        finishDocuments()
        endFlush(now)
    }

    /// Finishes the documents of the flush that is in progress. What waits for them follows with
    /// its end.
    mutating func finishDocuments() {
        var budget = StepBudget.unlimited
        _ = advanceFlush(&budget)
    }

    /// - Returns: whether the documents are there.
    private mutating func advanceFlush(_ budget: inout StepBudget) -> Bool {
        // Taken out, so that nothing is copied. Meanwhile the documents are ours.
        guard var flush = exchange(&flushing, with: nil) else { return true }
        isUnsettled = false
        defer {
            isUnsettled = flush.stage != .over
            flushing = flush
        }
        while flush.stage == .held {
            guard flush.processed < flush.held.count else {
                beginDocuments(&flush)
                break
            }
            guard !budget.isSpent else { return false }
            let message = exchange(&flush.held[flush.processed], with: .pong)
            flush.processed += 1
            budget.spend(message.steps)
            process(message)
        }
        guard flush.stage == .documents else { return true }
        let notification = store.continueFlush(&budget)
        guard !store.isFlushing else { return false }
        flush.stage = .over
        if let notification { report(.changed(notification)) }
        return true
    }

    private mutating func beginDocuments(_ flush: inout DDPFlush) {
        flush.held = []
        // The client is about to fail, and the documents stay as they were last.
        guard !isFull || socket == nil else { return flush.stage = .over }
        flush.stage = .documents
        flush.becomesCurrent = stale != nil && removeStaleDocuments()
        guard quiescence.isResetting || store.isBuffering else { return }
        flush.hasApplied = true
        store.beginFlush(emptying: quiescence.isResetting, except: own.kept)
        quiescence.isResetting = false
    }

    private mutating func endFlush(_ now: Instant) {
        guard let flush = exchange(&flushing, with: nil) else { return }
        failAtLimit(now)
        guard stage != .failed || !isFull else { return }
        if flush.hasApplied { keeping.changed(now) }
        if flush.becomesCurrent { report(.current) }
        let visible = afterFlush
        afterFlush = []
        for event in visible {
            switch event {
            case .method(let id): methodVisible(id, now)
            case .subscription(let id): subscriptionVisible(id, now)
            }
        }
        measureStandstill(now)
        if let cause = flush.cause { takeEffect(cause, now) }
    }
}

extension DDPMessage {
    /// What processing it costs.
    fileprivate var steps: Int {
        switch self {
        case .ready(let ids), .updated(let ids): 1 + ids.count
        case .connected, .failed, .ping, .pong, .document, .nosub, .result, .error: 1
        }
    }
}
