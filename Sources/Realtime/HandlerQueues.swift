import Synchronization

/// A handler, and the actor that it was written on. A closure in main-actor code, for example, is
/// isolated to the main actor.
///
/// Functions that are `@isolated(any)` are cast to functions without isolation: Swift calls them
/// only with `await`, which would leave the actor or the executor that a handler without isolation
/// has to run on.
package struct Handler<Function: Sendable>: Sendable {
    package let isolation: (any Actor)?
    /// To be called on `isolation`, if there is one.
    package let call: Function

    package init(_ isolation: (any Actor)?, _ function: Function) {
        self.isolation = isolation
        call = function
    }

    package init(_ function: @escaping @Sendable @isolated(any) () -> Void)
    where Function == @Sendable () -> Void {
        self.init(function.isolation, unsafeBitCast(function, to: Function.self))
    }

    package init?<A>(_ function: (@Sendable @isolated(any) (A) -> Void)?)
    where Function == @Sendable (A) -> Void {
        guard let function else { return nil }
        self.init(function.isolation, unsafeBitCast(function, to: Function.self))
    }

    package init?<A, B>(_ function: (@Sendable @isolated(any) (A, B) -> Void)?)
    where Function == @Sendable (A, B) -> Void {
        guard let function else { return nil }
        self.init(function.isolation, unsafeBitCast(function, to: Function.self))
    }

    package init?<A, B, C>(_ function: (@Sendable @isolated(any) (A, B, C) -> Void)?)
    where Function == @Sendable (A, B, C) -> Void {
        guard let function else { return nil }
        self.init(function.isolation, unsafeBitCast(function, to: Function.self))
    }
}

/// Runs handlers where they belong: on the actor that they are isolated to, all others by the
/// user's executor. Those of one place run one at a time and in order.
final class HandlerQueues: Sendable {
    /// nil when the user's executor is the loop itself.
    private let queue: CallbackQueue?
    private let actor: (any Actor)?
    /// Of other actors than the executor's.
    private let others = Mutex<[ObjectIdentifier: CallbackQueue]>([:])
    private let makeQueue: @Sendable (Spreadbot.Executor) -> CallbackQueue

    /// - Parameter onResume: called when there is room again.
    init(
        on executor: Spreadbot.Executor, _ maxMessages: Int = .max, _ maxBytes: Int = .max,
        onResume: @escaping @Sendable () -> Void = {}
    ) {
        makeQueue = { CallbackQueue(on: $0, maxMessages, maxBytes, onResume: onResume) }
        switch executor {
        case .loop: (queue, actor) = (nil, nil)
        case .actor(let own): (queue, actor) = (makeQueue(executor), own)
        case .task: (queue, actor) = (makeQueue(executor), nil)
        }
    }

    /// Runs a handler, inside this call if it belongs on the loop.
    /// - Parameter isOwed: also when the queues were closed.
    /// - Returns: the queue of the handler, when the loop should deliver no more for now.
    func run(
        on isolation: (any Actor)?, count: Int = 0, isOwed: Bool = false,
        _ body: @escaping @Sendable () -> Void
    ) -> CallbackQueue? {
        guard let queue = queue(for: isolation) else {
            body()
            return nil
        }
        return queue.put(count: count, isOwed: isOwed, body) ? queue : nil
    }

    private func queue(for isolation: (any Actor)?) -> CallbackQueue? {
        guard let isolation, isolation !== actor else { return queue }
        return others.withLock { others in
            let id = ObjectIdentifier(isolation)
            if let known = others[id] { return known }
            let fresh = makeQueue(.actor(isolation))
            others[id] = fresh
            return fresh
        }
    }

    private var all: [CallbackQueue] {
        others.withLock { Array($0.values) } + [queue].compactMap(\.self)
    }

    /// From here on only handlers that are owed are run.
    func close() { for queue in all { queue.close() } }

    /// Nothing is put any more: the tasks of the queues end after what waits.
    func finish() { for queue in all { queue.finish() } }
}
