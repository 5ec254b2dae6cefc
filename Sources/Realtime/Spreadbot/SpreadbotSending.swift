internal import Engine
import Synchronization
import Wire

extension Spreadbot {
    /// Sends a text, in order with the other sends. It goes by the WebSocket while that is
    /// connected, otherwise by a POST; without a network it waits.
    /// - Parameter completion: called once with the result, never inside this call. Without it, a
    ///   text that is refused, for example because the outbox is full, is reported by `onError`.
    public func sendMessageString(
        message: String, @_inheritActorContext completion: Completion? = nil
    ) {
        send(.text, Array(message.utf8), completion)
    }

    /// Sends a text and waits until the server has it.
    /// - Throws: `RealtimeError`: `.connectionLost` if it may or may not have arrived;
    ///   `CancellationError` if the task was cancelled before sending began.
    public func sendMessageString(message: String) async throws {
        try await send(.text, Array(message.utf8))
    }

    /// Sends bytes; otherwise like `sendMessageString`.
    public func sendMessageBinary(
        message: [UInt8], @_inheritActorContext completion: Completion? = nil
    ) {
        send(.binary, message, completion)
    }

    public func sendMessageBinary(message: [UInt8]) async throws {
        try await send(.binary, message)
    }

    private func send(_ kind: MessageKind, _ bytes: [UInt8], _ completion: Completion?) {
        let completion = Handler(completion)
        let done = completion.map { completion in
            { [dispatcher] (sent: SpreadbotSent) in
                let result = sent.outcome
                dispatcher.run(on: completion.isolation, isOwed: true) { completion.call(result) }
            }
        }
        do throws(RealtimeError) {
            try checkUsable()
            try bytes.withUnsafeBufferPointer { (bytes) throws(RealtimeError) in
                try connection.send(kind, UnsafeRawBufferPointer(bytes), done: done)
            }
        } catch {
            guard let completion else { return dispatcher.report(error) }
            // The dispatcher's queues may have ended.
            let queues = HandlerQueues(on: executor)
            try? loop.post {
                _ = queues.run(on: completion.isolation, isOwed: true) {
                    completion.call(.failure(error))
                }
            }
        }
    }

    private func send(_ kind: MessageKind, _ bytes: [UInt8]) async throws {
        try checkUsable()
        try await connection.sending { assigned, done in
            try bytes.withUnsafeBytes {
                try connection.send(kind, $0, assigned: assigned, done: done)
            }
        }.outcome.get()
    }
}

extension SpreadbotSent {
    var outcome: Result<Void, RealtimeError> { error.map { .failure($0) } ?? .success(()) }
}

extension SpreadbotConnection {
    /// Sends with `begin` and waits for the result. If the task is cancelled before the send has
    /// begun, it is not sent.
    /// - Throws: the error of `begin`; `CancellationError`.
    func sending(
        _ begin: (
            _ assigned: (UInt64) -> Void, _ done: @escaping (SpreadbotSent) -> Void
        ) throws -> Void
    ) async throws -> SpreadbotSent {
        let number = Mutex<UInt64?>(nil)
        let sent = try await withTaskCancellationHandler {
            try Task.checkCancellation()
            return try await withCheckedThrowingContinuation {
                (continuation: CheckedContinuation<SpreadbotSent, any Error>) in
                do {
                    try begin({ assigned in number.withLock { $0 = assigned } }) {
                        continuation.resume(returning: $0)
                    }
                } catch {
                    continuation.resume(throwing: error)
                }
                // The task may have been cancelled before the send had a number.
                if Task.isCancelled { cancel(number) }
            }
        } onCancel: {
            cancel(number)
        }
        if sent.error?.code == .cancelled, Task.isCancelled { throw CancellationError() }
        return sent
    }

    private func cancel(_ number: borrowing Mutex<UInt64?>) {
        if let number = number.withLock({ $0 }) { try? cancel(number) }
    }
}
