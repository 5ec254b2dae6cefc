internal import Engine
import Synchronization
import Wire

extension PusherChannel {
    /// The events of the channel from now on, in order. When many wait, the server is slowed down;
    /// see `PusherClientOptions.maxBufferedEvents`. Ends when the channel is unsubscribed, when its
    /// connection is released, and when the iterating task is cancelled. While it exists, the
    /// connection is kept.
    /// - Parameter eventName: the exact name; nil for all events.
    public func events(_ eventName: String? = nil) -> PusherEvents {
        PusherEvents(connection, handle?.bindings) {
            try handle?.bind(eventName, ended: $0, $1)
        }
    }

    /// Waits until the server has confirmed the subscription.
    /// - Throws: `RealtimeError`: why the subscription failed; `.closed` if the channel is
    ///   unsubscribed or the connection ends; `CancellationError`.
    public func subscribed() async throws {
        // While a task waits, the connection stays.
        let connection = connection
        try await waiters.wait { result }
        withExtendedLifetime(connection) {}
    }

    /// The result of the subscription; nil if there is none yet.
    private var result: Result<Void, any Error>? {
        if isSubscribed { return .success(()) }
        if let failure = state.withLock({ $0.failure }) { return .failure(failure) }
        return isRegistered ? nil : .failure(PusherChannel.gone(name))
    }
}

extension Pusher {
    /// The events of all channels and of the connection from now on, in order. When many wait, the
    /// server is slowed down; see `PusherClientOptions.maxBufferedEvents`. Ends when the iterating
    /// task is cancelled. While it exists, the connection is kept.
    /// - Parameter eventName: the exact name; nil for all events.
    public func events(_ eventName: String? = nil) -> PusherEvents {
        PusherEvents(connection, connection.engine?.bindings) {
            try connection.engine?.bind(eventName, ended: $0, $1)
        }
    }
}

/// The events of a channel or a connection.
public struct PusherEvents: AsyncSequence, AsyncIteratorProtocol, Sendable {
    public typealias Element = PusherEvent
    public typealias Failure = Never

    private let binding: Binding?

    /// Bound until the sequence and its iterators are released.
    private final class Binding: Sendable {
        let connection: PusherConnection
        let mailbox: Mailbox<PusherEvent>
        private let bindings: PusherBindings<PusherChannelHandle>
        private let id: UInt64

        init(
            _ connection: PusherConnection, _ mailbox: Mailbox<PusherEvent>, _ id: UInt64,
            in bindings: PusherBindings<PusherChannelHandle>
        ) {
            self.connection = connection
            self.mailbox = mailbox
            self.id = id
            self.bindings = bindings
        }

        deinit {
            bindings.remove(id)
            // It may have been full.
            resume()
        }

        func resume() { try? connection.engine?.resume() }
    }

    init(
        _ connection: PusherConnection?, _ bindings: PusherBindings<PusherChannelHandle>?,
        bind: (_ ended: @escaping () -> Void, @escaping PusherHandler) throws -> UInt64?
    ) {
        guard let connection, let engine = connection.engine, let bindings else {
            binding = nil
            return
        }
        let options = connection.options
        let mailbox = Mailbox<PusherEvent>(
            options.maxBufferedEvents, options.maxBufferedBytes, on: engine.loop)
        let dispatcher = connection.dispatcher
        let id = try? bind({ mailbox.finish(.normal) }) { [weak engine] view, channel, _ in
            guard mailbox.put(dispatcher.event(view, channel)) else { return }
            try? engine?.pause()
            // If the mailbox was emptied meanwhile, `resume` was called before there was a pause.
            if !mailbox.isPaused { try? engine?.resume() }
        }
        guard let id else {
            binding = nil
            return
        }
        binding = Binding(connection, mailbox, id, in: bindings)
    }

    public func makeAsyncIterator() -> PusherEvents { self }

    public mutating func next() async -> PusherEvent? { await next(isolation: #isolation) }

    public mutating func next(
        isolation actor: isolated (any Actor)?
    ) async throws(Never) -> PusherEvent? {
        guard let binding else { return nil }
        let mailbox = binding.mailbox
        if let event = mailbox.takeNow(onResume: binding.resume) { return event }
        return try? await mailbox.next(onResume: binding.resume)
    }
}
