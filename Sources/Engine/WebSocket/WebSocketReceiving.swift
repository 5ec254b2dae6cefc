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
        if state == .new {
            try setHandlers { handlers in
                if inbox == nil { inbox = collect(from: &handlers) }
            }
            // Another thread may have been faster.
            if state == .new { try? start() }
        }
        try requiredInbox().waitUntilOpen(timeout)
    }

    /// Takes the next message, waiting until there is one. It is the caller's, who frees it by
    /// `free`.
    /// - Parameter timeout: nil for no limit.
    package func receive(
        timeout: Duration?
    ) throws(RealtimeError) -> UnsafeMutablePointer<rt_received> {
        try checkMayWait()
        let inbox = try requiredInbox()
        guard inbox.keepsItems else {
            throw RealtimeError(.state, "a callback receives the messages of this connection")
        }
        let (memory, resumes) = try inbox.take(timeout)
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
        guard let inbox = setting.withLock({ _ in inbox }) else {
            throw RealtimeError(.state, "the connection was not opened by a call that waits for it")
        }
        return inbox
    }

    /// Has everything go through an inbox, beside the handlers that there are.
    private func collect(from handlers: inout WebSocketHandlers) -> Inbox {
        let isTaken = handlers.message != nil || handlers.messages != nil || handlers.piece != nil
        let inbox = Inbox(keepsItems: !isTaken)
        if inbox.keepsItems {
            handlers.message = { [weak self] kind, bytes in
                guard inbox.put(rt_received.make(kind, bytes), bytes: bytes.count) else { return }
                try? self?.pause()
                if !inbox.shouldPause { try? self?.resume() }
            }
        }
        let source = InboxSource(inbox)
        let (open, close) = (handlers.open, handlers.close)
        handlers.open = {
            open?($0)
            source.inbox.opened()
        }
        handlers.close = { end in
            close?(end)
            let why = end.reason.isEmpty ? "" : " (\(end.reason))"
            let inOrder = "the connection was closed with \(end.code.rawValue)\(why)"
            source.inbox.finish(end.error ?? RealtimeError(.closed, inOrder))
        }
        return inbox
    }
}

/// What fills an inbox. When it goes, nothing comes any more: the connection or its loop was freed.
private final class InboxSource {
    let inbox: Inbox

    init(_ inbox: Inbox) { self.inbox = inbox }

    deinit { inbox.finish(RealtimeError(.closed, "the connection or its loop was freed")) }
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
