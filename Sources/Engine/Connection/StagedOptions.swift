import Session
import Synchronization
import Wire

/// Options that any thread sets and a loop's thread works with: callers change what is staged here,
/// and the loop's thread takes a copy when an attempt begins. So neither sees the other's half.
///
/// Unchecked because `lock` guards what `state` points to. It is not a `Mutex` of the state, since
/// whoever reads one option there copies all of them (Swift 6.3.1).
final class StagedOptions<Configuration: Sendable>: @unchecked Sendable {
    struct State: Sendable {
        var configuration: Configuration
        /// nil for the loop's own.
        var reachability: Reachability?
        fileprivate(set) var isStarted = false
        /// Credentials were asked for and are being fetched: options may be changed.
        fileprivate(set) var awaitsCredentials = false

        /// - Returns: why `change` failed.
        mutating func changed(
            by change: (inout Configuration) throws -> Void
        ) -> (any Error)? {
            do {
                try change(&configuration)
                return nil
            } catch {
                return error
            }
        }
    }

    private let state: UnsafeMutablePointer<State>
    private let lock = Mutex<Void>(())
    private let hasStarted = Atomic<Bool>(false)
    /// What ends the time for options, for messages: "the long poll is started".
    private let begun: String

    init(_ configuration: Configuration, until begun: String) {
        state = .allocate(capacity: 1)
        state.initialize(to: State(configuration: configuration))
        self.begun = begun
    }

    deinit {
        state.deinitialize(count: 1)
        state.deallocate()
    }

    private func withState<Result: Sendable, Failure: Error>(
        _ body: (inout State) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try lock.withLock { _ throws(Failure) in try body(&state.pointee) }
    }

    /// Changes options.
    /// - Parameter isAsked: inside a handler that may change them.
    /// - Throws: `.state` when they may not be changed now.
    func change(
        isAsked: Bool, _ change: (inout State) throws(RealtimeError) -> Void
    ) throws(RealtimeError) {
        // What is replaced is released outside the lock: it may hold user data. All else is
        // changed in its place.
        var old: Reachability?
        defer { withExtendedLifetime(old) {} }
        try withState { state throws(RealtimeError) in
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
        _ change: (inout State) throws(RealtimeError) -> Void
    ) throws(RealtimeError) {
        try self.change(isAsked: true) { state throws(RealtimeError) in
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
        try withState { state throws(Failure) in
            try withUnsafePointer(to: &state.configuration, body)
        }
    }

    /// nil for the loop's own.
    var reachability: Reachability? { withState { $0.reachability } }

    var isStarted: Bool { hasStarted.load(ordering: .acquiring) }

    /// For what begins with its first use.
    /// - Returns: whether this was the first call.
    func start() -> Bool {
        if isStarted { return false }
        return withState { state in
            defer { begin(&state) }
            return !state.isStarted
        }
    }

    /// - Parameter prepare: what is made of the options; when it fails nothing has begun.
    /// - Throws: `.state` the second time.
    func start<Result: Sendable>(
        _ prepare: (Configuration) throws(RealtimeError) -> Result
    ) throws(RealtimeError) -> Result {
        try withState { state throws(RealtimeError) in
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
    func awaitCredentials() { withState { $0.awaitsCredentials = true } }

    /// The options as they are; credentials are awaited no longer.
    func take() -> State {
        withState { state in
            state.awaitsCredentials = false
            return state
        }
    }
}
