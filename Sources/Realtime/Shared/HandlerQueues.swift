internal import Engine
import Synchronization

/// A handler, and the actor to which its closure is isolated, such as the main actor.
///
/// `@isolated(any)` functions are cast to functions without isolation, because Swift calls them
/// only with `await`. That would leave the actor or executor on which a handler without isolation
/// must run.
package struct Handler<Function: Sendable>: Sendable {
    package let isolation: (any Actor)?
    /// Must be called on `isolation`, if there is one.
    package let call: Function

    package init(_ isolation: (any Actor)?, _ function: Function) {
        self.isolation = isolation
        call = function
    }

    package init(_ function: @escaping @Sendable @isolated(any) () -> Void)
    where Function == @Sendable () -> Void {
        self.init(function.isolation, unsafeBitCast(function, to: Function.self))
    }

    package init?(_ function: (@Sendable @isolated(any) () -> Void)?)
    where Function == @Sendable () -> Void {
        guard let function else { return nil }
        self.init(function.isolation, unsafeBitCast(function, to: Function.self))
    }

    package init<A>(escaping function: @escaping @Sendable @isolated(any) (A) -> Void)
    where Function == @Sendable (A) -> Void {
        self.init(function.isolation, unsafeBitCast(function, to: Function.self))
    }

    package init?<A>(_ function: (@Sendable @isolated(any) (A) -> Void)?)
    where Function == @Sendable (A) -> Void {
        guard let function else { return nil }
        self.init(function.isolation, unsafeBitCast(function, to: Function.self))
    }

    // The generic ones do not accept spans, which are not escapable.

    package init?(_ function: (@Sendable @isolated(any) (MessageKind, RawSpan) -> Void)?)
    where Function == @Sendable (MessageKind, RawSpan) -> Void {
        guard let function else { return nil }
        self.init(function.isolation, unsafeBitCast(function, to: Function.self))
    }

    package init?(
        _ function: (@Sendable @isolated(any) (MessageKind, RawSpan, Bool, Bool) -> Void)?
    ) where Function == @Sendable (MessageKind, RawSpan, Bool, Bool) -> Void {
        guard let function else { return nil }
        self.init(function.isolation, unsafeBitCast(function, to: Function.self))
    }

    package init?<A, B>(_ function: (@Sendable @isolated(any) (A, B) -> Void)?)
    where Function == @Sendable (A, B) -> Void {
        guard let function else { return nil }
        self.init(function.isolation, unsafeBitCast(function, to: Function.self))
    }

    package init?<A, B, C, D>(_ function: (@Sendable @isolated(any) (A, B, C, D) -> Void)?)
    where Function == @Sendable (A, B, C, D) -> Void {
        guard let function else { return nil }
        self.init(function.isolation, unsafeBitCast(function, to: Function.self))
    }

    package init?<A, B, C>(_ function: (@Sendable @isolated(any) (A, B, C) -> Void)?)
    where Function == @Sendable (A, B, C) -> Void {
        guard let function else { return nil }
        self.init(function.isolation, unsafeBitCast(function, to: Function.self))
    }
}

/// Runs handlers on the actor to which they are isolated, all others on the user's executor. Those
/// in one place run one at a time and in order.
final class HandlerQueues: Sendable {
    /// Each queue is created when it is first used.
    private struct Queues {
        /// The queue of the user's executor.
        var own: CallbackQueue?
        var ofActors: [ObjectIdentifier: CallbackQueue] = [:]
        var isClosed = false
    }

    private let executor: HandlerExecutor
    private let queues = Mutex(Queues())
    private let maxMessages: Int
    private let maxBytes: Int
    private let loop: Engine.Loop?
    private let onResume: @Sendable () -> Void

    /// - Parameters:
    ///   - loop: whose thread runs handlers here; nil for any thread.
    ///   - onResume: called when every queue has room again.
    init(
        on executor: HandlerExecutor, _ maxMessages: Int = .max, _ maxBytes: Int = .max,
        loop: Engine.Loop? = nil, onResume: @escaping @Sendable () -> Void = {}
    ) {
        self.executor = executor
        self.maxMessages = maxMessages
        self.maxBytes = maxBytes
        self.loop = loop
        self.onResume = onResume
    }

    /// Runs a handler, inside this call if it belongs on the loop.
    /// - Parameters:
    ///   - count: its size in bytes; not evaluated for a handler that runs in this call.
    ///   - isOwed: whether to run it even after `close`.
    /// - Returns: the handler's queue, if the loop should stop delivering for now.
    func run(
        on isolation: (any Actor)?, count: @autoclosure () -> Int = 0, isOwed: Bool = false,
        _ body: @escaping @Sendable () -> Void
    ) -> CallbackQueue? {
        guard let queue = queue(for: isolation) else {
            body()
            return nil
        }
        return queue.put(count: count(), isOwed: isOwed, body) ? queue : nil
    }

    private func queue(for isolation: (any Actor)?) -> CallbackQueue? {
        switch (executor, isolation) {
        case (.loop, nil): return nil
        case (_, let isolation?) where !isOwn(isolation):
            let id = ObjectIdentifier(isolation)
            return queues.withLock { queues in
                let queue = queues.ofActors[id] ?? make(.actor(isolation), queues.isClosed)
                queues.ofActors[id] = queue
                return queue
            }
        default:
            return queues.withLock { queues in
                let queue = queues.own ?? make(executor, queues.isClosed)
                queues.own = queue
                return queue
            }
        }
    }

    private func make(_ executor: HandlerExecutor, _ isClosed: Bool) -> CallbackQueue {
        let queue = CallbackQueue(
            on: executor, maxMessages, maxBytes, loop: loop
        ) { [weak self] in
            if let self, !isPaused { onResume() }
        }
        if isClosed { queue.close() }
        return queue
    }

    private func isOwn(_ actor: any Actor) -> Bool {
        if case .actor(let own) = executor { own === actor } else { false }
    }

    /// Whether one of the queues is full, and has not been emptied enough since.
    var isPaused: Bool { all.contains { $0.isPaused } }

    /// From here on only owed handlers run.
    func close() {
        queues.withLock { $0.isClosed = true }
        for queue in all { queue.close() }
    }

    /// No handler is added after this; the tasks end after those that wait.
    func finish() { for queue in all { queue.finish() } }

    private var all: [CallbackQueue] {
        queues.withLock { Array($0.ofActors.values) + [$0.own].compactMap(\.self) }
    }
}
