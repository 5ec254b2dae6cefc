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
