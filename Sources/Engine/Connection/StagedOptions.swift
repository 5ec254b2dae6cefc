import Session
import Synchronization
import Wire

/// Options that any thread sets and a loop's thread works with: callers change what is staged here,
/// and the loop's thread takes a copy when an attempt begins. So neither sees the other's half.
final class StagedOptions<Configuration: Sendable>: Sendable {
    struct State: Sendable {
        var configuration: Configuration
        /// nil for the loop's own.
        var reachability: Reachability?
        fileprivate(set) var isStarted = false
        /// Credentials were asked for and are being fetched: options may be changed.
        fileprivate(set) var awaitsCredentials = false
    }

    private let state: Mutex<State>
    /// What the options are of, for messages.
    private let owner: String
    private let begun: String

    /// - Parameter begun: what ends the time for options.
    init(_ configuration: Configuration, of owner: String, until begun: String = "started") {
        state = Mutex(State(configuration: configuration))
        self.owner = owner
        self.begun = begun
    }

    /// Changes options.
    /// - Parameter isAsked: inside a handler that may change them.
    /// - Throws: `.state` when they may not be changed now.
    func change(isAsked: Bool, _ change: (inout State) throws -> Void) throws {
        // What is replaced is released outside the lock: it may hold user data. All else is
        // changed in its place.
        var old: Reachability?
        defer { withExtendedLifetime(old) {} }
        try state.withLock { state in
            guard !state.isStarted || isAsked || state.awaitsCredentials else {
                throw RealtimeError(.state, "an option must be set before the \(owner) is \(begun)")
            }
            old = state.reachability
            try change(&state)
        }
    }

    /// Changes options that are taken once, when it is started.
    /// - Throws: `.state` from then on, whoever asks.
    func changeOnce(_ change: (inout State) throws -> Void) throws {
        try self.change(isAsked: true) { state in
            guard !state.isStarted else {
                throw RealtimeError(
                    .state,
                    "this option is taken once: it must be set before the \(owner) is \(begun)")
            }
            try change(&state)
        }
    }

    func read<Result>(_ body: (State) -> Result) -> Result { state.withLock { body($0) } }

    var isStarted: Bool { state.withLock { $0.isStarted } }

    /// For what begins with its first use.
    /// - Returns: whether this was the first call.
    func start() -> Bool {
        state.withLock { state in
            defer { state.isStarted = true }
            return !state.isStarted
        }
    }

    /// - Parameter prepare: what is made of the options; when it fails nothing has begun.
    /// - Throws: `.state` the second time.
    func start<Result>(
        _ prepare: (Configuration) throws(RealtimeError) -> Result
    ) throws(RealtimeError) -> Result {
        try state.withLock { state throws(RealtimeError) in
            guard !state.isStarted else {
                throw RealtimeError(.state, "the \(owner) was started before")
            }
            let result = try prepare(state.configuration)
            state.isStarted = true
            return result
        }
    }

    // MARK: The loop's thread

    /// Lets other threads change options until `take`.
    func awaitCredentials() { state.withLock { $0.awaitsCredentials = true } }

    /// The options as they are; credentials are awaited no longer.
    func take() -> State {
        state.withLock { state in
            state.awaitsCredentials = false
            return state
        }
    }
}
