import Session
import Synchronization
import Wire

/// Options that any thread sets and a loop's thread works with: callers change what is staged here,
/// and the loop's thread takes it when an attempt begins. What was taken no longer changes:
/// setting another option then makes a copy.
struct StagedOptions<Configuration: Sendable>: ~Copyable, Sendable {
    struct State: Sendable {
        /// In memory of its own, as most are never changed once they are taken.
        fileprivate(set) var options: Shared<Configuration>
        /// nil for the loop's own.
        var reachability: Reachability?
        fileprivate(set) var isStarted = false
        /// Credentials were asked for and are being fetched: options may be changed.
        fileprivate(set) var awaitsCredentials = false

        fileprivate init(_ options: Shared<Configuration>) { self.options = options }

        var configuration: Configuration { options.value }

        mutating func change(
            _ change: (inout Configuration) throws(RealtimeError) -> Void
        ) throws(RealtimeError) {
            if !isKnownUniquelyReferenced(&options) { options = Shared(options.value) }
            try change(&options.value)
        }
    }

    private let state: Mutex<State>
    private let hasStarted = Atomic<Bool>(false)

    init(_ options: Shared<Configuration>) { state = Mutex(State(options)) }

    /// Changes options.
    /// - Parameters:
    ///   - begun: what ends the time for options, for messages: "the long poll is started".
    ///   - isAsked: inside a handler that may change them.
    /// - Throws: `.state` when they may not be changed now.
    func change(
        before begun: String, isAsked: Bool,
        _ change: (inout State) throws(RealtimeError) -> Void
    ) throws(RealtimeError) {
        // What is replaced is released outside the lock: it may hold user data. All else is
        // changed in its place.
        var old: Reachability?
        defer { withExtendedLifetime(old) {} }
        try state.withLock { state throws(RealtimeError) in
            guard !state.isStarted || isAsked || state.awaitsCredentials else {
                throw RealtimeError(.state, "an option must be set before \(begun)")
            }
            old = state.reachability
            try change(&state)
        }
    }

    /// Changes options that are taken once, when it is started.
    /// - Throws: `.state` from then on, whoever asks.
    func changeOnce(
        before begun: String, _ change: (inout State) throws(RealtimeError) -> Void
    ) throws(RealtimeError) {
        try self.change(before: begun, isAsked: true) { state throws(RealtimeError) in
            guard !state.isStarted else {
                throw RealtimeError(
                    .state, "this option is taken once: it must be set before \(begun)")
            }
            try change(&state)
        }
    }

    /// Reads options. The pointer is valid until `body` returns.
    func read<Result: Sendable, Failure: Error>(
        _ body: (UnsafePointer<Configuration>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try state.withLock { state throws(Failure) in
            try withUnsafePointer(to: &state.options.value, body)
        }
    }

    /// nil for the loop's own.
    var reachability: Reachability? { state.withLock { $0.reachability } }

    var isStarted: Bool { hasStarted.load(ordering: .acquiring) }

    /// For what begins with its first use.
    /// - Returns: whether this was the first call.
    func start() -> Bool {
        if isStarted { return false }
        return state.withLock { state in
            defer { begin(&state) }
            return !state.isStarted
        }
    }

    /// - Parameter prepare: what is made of the options; when it fails nothing has begun.
    /// - Throws: `.state` the second time.
    func start<Result: Sendable>(
        _ begun: String, _ prepare: (Configuration) throws(RealtimeError) -> Result
    ) throws(RealtimeError) -> Result {
        try state.withLock { state throws(RealtimeError) in
            guard !state.isStarted else {
                throw RealtimeError(.state, "\(begun) already")
            }
            let result = try prepare(state.configuration)
            begin(&state)
            return result
        }
    }

    private func begin(_ state: inout State) {
        state.isStarted = true
        hasStarted.store(true, ordering: .releasing)
    }

    // MARK: The loop's thread

    /// Lets other threads change options until `take`.
    func awaitCredentials() { state.withLock { $0.awaitsCredentials = true } }

    /// The options as they are; credentials are awaited no longer.
    /// - Parameter same: those that say the same as these, in memory that others know.
    @discardableResult
    func take(_ same: (Shared<Configuration>) -> Shared<Configuration> = { $0 }) -> State {
        state.withLock { state in
            state.awaitsCredentials = false
            state.options = same(state.options)
            return state
        }
    }
}
