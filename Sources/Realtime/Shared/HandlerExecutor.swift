/// Where handlers run, one at a time and in order. A closure that is isolated to an actor, for
/// example in main-actor code, runs on that actor, whatever the executor.
public enum HandlerExecutor: Sendable {
    /// On the loop's thread, inside the loop's callback. A handler must not block.
    case loop
    case actor(any Actor)
    case task(any TaskExecutor)

    /// The main actor. The default. Handlers run only while the main thread is free: while an
    /// async `main` or top-level code awaits, or in `RunLoop.main.run()` or `dispatchMain()`.
    public static var main: HandlerExecutor { .actor(MainActor.shared) }
}

extension HandlerExecutor {
    /// Runs an asynchronous function of the program: on the actor to which it is isolated,
    /// otherwise on the task executor, or where Swift runs such functions.
    func perform(_ body: @escaping @Sendable () async -> Void) {
        switch self {
        case .loop, .actor: Task { await body() }
        case .task(let executor):
            Task(executorPreference: executor) {
                await body()
                // The task's executor preference alone does not retain the executor.
                withExtendedLifetime(executor) {}
            }
        }
    }
}
