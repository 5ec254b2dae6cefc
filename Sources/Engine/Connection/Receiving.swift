import Wire

// The blocking API: messages wait in an inbox for the threads that take them.
extension Endpoint {
    /// Starts the object with an inbox, unless it was started before.
    /// - Returns: whether this call was the first.
    func startReceiving(
        _ start: () throws(RealtimeError) -> Void
    ) throws(RealtimeError) -> Bool {
        try loop.checkMayWait()
        guard !wasStarted else { return false }
        openInbox()
        do throws(RealtimeError) {
            try start()
        } catch {
            // Another thread may have started it first.
            guard error.code == .state else { throw error }
        }
        return true
    }

    /// Starts the object if necessary, and waits until it is open.
    /// - Parameters:
    ///   - timeout: nil for no limit. After a timeout the object keeps trying.
    ///   - begin: starts the object, and calls `awaitOpening` with its argument.
    func waitUntilOpen(
        _ timeout: Duration?, _ begin: (Answer<RealtimeError?>) throws(RealtimeError) -> Void
    ) throws(RealtimeError) {
        try loop.checkMayWait()
        if isEstablished { return }
        if hasEnded, let end = inbox == nil ? hasEndedError : inbox?.ending { throw end }
        let waiter = Waiter<RealtimeError?>(on: loop)
        if timeout == .zero { waiter.giveUp() }
        defer { loop.perform { [self] in openings.removeAll { $0.isFor(waiter) } } }
        try begin(Answer(waiter))
        let end: RealtimeError?
        do throws(RealtimeError) {
            end = try waiter.wait(timeout)
        } catch {
            guard error.code == .timeout else { throw error }
            throw RealtimeError(.timeout, "the \(Self.kind) is not open yet; it keeps trying")
        }
        if let end { throw end }
    }

    /// Sets the answer once the object has opened or ended. The loop's owner only.
    func awaitOpening(_ answer: Answer<RealtimeError?>) {
        if isEstablished { return answer.set(nil) }
        guard hasEnded else {
            guard answer.isAwaited, takeInterruption() else { return openings.append(answer) }
            return answer.set(Inbox.interrupted)
        }
        answer.set(inbox?.ending ?? hasEndedError)
    }

    private func takeInterruption() -> Bool {
        defer { isInterrupted = false }
        return isInterrupted || inbox?.takeInterruption() == true
    }

    /// Makes messages wait for threads from now on.
    func openInbox() {
        makeInbox()
        loop.perform { [self] in
            if isInterrupted { inbox?.interrupt() }
            isInterrupted = false
        }
    }

    /// Ends the calls of threads that wait for the object.
    /// - Returns: false if none waits in `take`.
    func interruptTakes() -> Bool { inbox?.interruptWaiting() ?? false }

    /// Ends the calls that wait until the object is open. If there are none, and none were in
    /// `take`, the next call that would wait ends.
    func interruptOpenings(_ hasInterrupted: Bool) {
        if openings.contains(where: { $0.isAwaited }) { return settleOpenings(Inbox.interrupted) }
        if hasInterrupted { return }
        if let inbox { inbox.interrupt() } else { isInterrupted = true }
    }

    private var hasEndedError: RealtimeError {
        RealtimeError(.closed, "the \(Self.kind) has ended")
    }

    /// Ends the waits for the object to open. The loop's owner only.
    /// - Parameter end: why it will not open; nil if it is open.
    func settleOpenings(_ end: RealtimeError?) {
        guard !openings.isEmpty else { return }
        let answers = openings
        openings = []
        for answer in answers { answer.set(end) }
    }

    func requiredInbox() throws(RealtimeError) -> Inbox {
        guard let inbox else {
            throw RealtimeError(
                .state, "the \(Self.kind) was not started by a blocking call")
        }
        return inbox
    }

    /// Takes the next message, and blocks until there is one. The caller owns the message and frees
    /// it with `Inbox.free`.
    /// - Parameter timeout: nil for no limit; without a wait, callbacks may call this.
    func take<Message>(
        _ type: Message.Type, timeout: Duration?
    ) throws(RealtimeError) -> UnsafeMutablePointer<Message> {
        try take(timeout, batch: nil).assumingMemoryBound(to: type)
    }

    /// Like `take`, for all messages that are there, up to `most`. The caller frees them with
    /// `Inbox.free(batch:)`.
    func takeBatch<Message>(
        of type: Message.Type, timeout: Duration?, atMost most: Int
    ) throws(RealtimeError) -> UnsafeMutableRawPointer {
        try take(timeout, batch: (most, MemoryLayout<Message>.stride))
    }

    private func take(
        _ timeout: Duration?, batch: (most: Int, structBytes: Int)?
    ) throws(RealtimeError) -> UnsafeMutableRawPointer {
        try loop.checkNotForked()
        if timeout != .zero { try loop.checkMayWait() }
        let inbox = try requiredInbox()
        let isTaken = sharedHandlers.current.value.takeMessages
        let (memory, resumes): (UnsafeMutableRawPointer, Bool)
        let limit = isTaken ? .zero : timeout
        do {
            if let batch {
                (memory, resumes) = try inbox.takeBatch(
                    limit, atMost: batch.most, structBytes: batch.structBytes)
            } else {
                (memory, resumes) = try inbox.take(limit)
            }
        } catch {
            guard isTaken, error.code == .timeout else { throw error }
            throw RealtimeError(.state, "a callback receives the messages of this \(Self.kind)")
        }
        // Fails if the loop has ended; then there is nothing to resume.
        if resumes { try? resume(.full) }
        return memory
    }

    /// Keeps a message for the threads that wait. The loop's owner only.
    func keep(_ message: ReceivedMemory, in inbox: Inbox) {
        if inbox.put(message.start, bytes: message.textBytes) { pauseWhileFull(inbox) }
    }

    /// The same for several messages.
    /// - Parameter pauses: also if the inbox is not full any more, so that a new turn continues.
    func keep(_ messages: [ReceivedMemory], in inbox: Inbox, pauses: Bool) {
        if inbox.put(messages) || pauses { pauseWhileFull(inbox) }
    }

    private func pauseWhileFull(_ inbox: Inbox) {
        try? pause(.full)
        if !inbox.shouldPause { try? resume(.full) }
    }
}
