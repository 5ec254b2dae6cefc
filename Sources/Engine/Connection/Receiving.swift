import Wire

// The blocking API: messages wait in an inbox for the threads that take them.
extension Endpoint {
    /// Starts the object with an inbox, unless it was started before.
    /// - Returns: whether this call was the first.
    func startReceiving(
        _ start: () throws(RealtimeError) -> Void
    ) throws(RealtimeError) -> Bool {
        try checkMayWait()
        guard !wasStarted else { return false }
        makeInbox()
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
        try checkMayWait()
        if isEstablished { return }
        if hasEnded, let end = inbox == nil ? hasEndedError : inbox?.ending { throw end }
        let waiter = Waiter<RealtimeError?>(on: loop)
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
        guard hasEnded else { return openings.append(answer) }
        answer.set(inbox?.ending ?? hasEndedError)
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

    func checkMayWait() throws(RealtimeError) {
        try loop.checkNotForked()
        if loop.isOwner {
            throw RealtimeError(.reentrant, "a callback cannot wait for an object of its own loop")
        }
        try Loop.checkMayRun()
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
    /// - Parameter timeout: nil for no limit.
    func take<Message>(
        _ type: Message.Type, timeout: Duration?
    ) throws(RealtimeError) -> UnsafeMutablePointer<Message> {
        try checkMayWait()
        let inbox = try requiredInbox()
        let isTaken = sharedHandlers.current.value.takeMessages
        let (memory, resumes): (UnsafeMutableRawPointer, Bool)
        do {
            (memory, resumes) = try inbox.take(isTaken ? .zero : timeout)
        } catch {
            guard isTaken, error.code == .timeout else { throw error }
            throw RealtimeError(.state, "a callback receives the messages of this \(Self.kind)")
        }
        // Fails if the loop has ended; then there is nothing to resume.
        if resumes { try? resume(.full) }
        return memory.assumingMemoryBound(to: type)
    }

    /// Keeps a message for the threads that wait. The loop's owner only.
    func keep(_ message: ReceivedMemory, in inbox: Inbox) {
        guard inbox.put(message.start, bytes: message.textBytes) else { return }
        try? pause(.full)
        if !inbox.shouldPause { try? resume(.full) }
    }
}
