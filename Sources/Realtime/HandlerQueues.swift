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

/// Runs handlers on the actor to which they are isolated, all others on the user's executor. Those
/// in one place run one at a time and in order.
final class HandlerQueues: Sendable {
    /// nil if the user's executor is the loop.
    private let queue: CallbackQueue?
    private let actor: (any Actor)?
    /// The queues of actors other than the executor's.
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
    /// - Parameter isOwed: whether to run it even after `close`.
    /// - Returns: the handler's queue, if the loop should stop delivering for now.
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

    /// From here on only owed handlers run.
    func close() { for queue in all { queue.close() } }

    /// No handler is added after this; the tasks end after those that wait.
    func finish() { for queue in all { queue.finish() } }
}
