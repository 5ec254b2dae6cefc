package import CShims
import Glibc
import Session
import Synchronization
package import Wire

// The blocking form: messages wait in an inbox for the threads that take them.
extension WebSocketConnection {
    /// Starts the connection, unless that was done, and waits until it is open.
    /// - Parameter timeout: nil for no limit. When it is over, the connection goes on trying.
    package func connect(timeout: Duration?) throws(RealtimeError) {
        try checkMayWait()
        let isFirst = !wasStarted
        if isFirst {
            try setHandlers { if $0.inbox == nil { $0.inbox = Inbox() } }
            do throws(RealtimeError) {
                try start()
            } catch {
                // Another thread may be faster.
                guard error.code == .state else { throw error }
            }
        }
        try requiredInbox().waitUntilOpen(timeout, isFirst: isFirst)
    }

    /// Takes the next message, waiting until there is one. It is the caller's, who frees it by
    /// `free`.
    /// - Parameter timeout: nil for no limit.
    package func receive(
        timeout: Duration?
    ) throws(RealtimeError) -> UnsafeMutablePointer<rt_received> {
        try checkMayWait()
        let inbox = try requiredInbox()
        let isTaken = sharedHandlers.current.value.delivery.isSomebody
        let (memory, resumes): (UnsafeMutableRawPointer, Bool)
        do {
            (memory, resumes) = try inbox.take(isTaken ? .zero : timeout)
        } catch {
            guard isTaken, error.code == .timeout else { throw error }
            throw RealtimeError(.state, "a callback receives the messages of this connection")
        }
        // Fails when the loop is over, and then nothing comes.
        if resumes { try? resume() }
        return memory.assumingMemoryBound(to: rt_received.self)
    }

    package static func free(_ message: UnsafeMutablePointer<rt_received>?) { Glibc.free(message) }

    private func checkMayWait() throws(RealtimeError) {
        try loop.checkNotForked()
        if loop.isOwner {
            throw RealtimeError(.reentrant, "a callback cannot wait for an object of its own loop")
        }
    }

    private func requiredInbox() throws(RealtimeError) -> Inbox {
        guard let inbox = sharedHandlers.current.value.inbox else {
            throw RealtimeError(.state, "there is nothing to receive before a call of connect")
        }
        return inbox
    }

    /// A message that threads wait for, on the loop's.
    func put(_ kind: MessageKind, _ bytes: UnsafeRawBufferPointer, into inbox: Inbox) {
        guard inbox.put(rt_received.make(kind, bytes), bytes: bytes.count) else { return }
        try? pause()
        if !inbox.shouldPause { try? resume() }
    }

    func finishInbox(_ ending: WebSocketLife.Ending, _ error: RealtimeError?) {
        guard let inbox = handlers.inbox else { return }
        let why = ending.reason.isEmpty ? "" : " (\(ending.reason))"
        let inOrder = "the connection was closed with \(ending.code.rawValue)\(why)"
        inbox.finish(error ?? RealtimeError(.closed, inOrder))
    }
}

extension rt_received {
    /// A message in memory of its own: the struct, the bytes, a NUL.
    fileprivate static func make(
        _ kind: MessageKind, _ bytes: UnsafeRawBufferPointer
    ) -> UnsafeMutablePointer<rt_received> {
        let size = MemoryLayout<rt_received>.size
        let memory: UnsafeMutableRawPointer = shim_grow(nil, size + bytes.count + 1)
        let data = (memory + size).assumingMemoryBound(to: UInt8.self)
        if let base = bytes.baseAddress { memcpy(data, base, bytes.count) }
        data[bytes.count] = 0
        let message = memory.bindMemory(to: rt_received.self, capacity: 1)
        message.initialize(
            to: rt_received(
                struct_bytes: size, kind: kind.rawValue, reserved: 0, data: data,
                length: bytes.count))
        return message
    }
}
