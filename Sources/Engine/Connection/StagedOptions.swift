import Session
import Synchronization
import Wire

/// Options that any thread sets and a loop's thread uses. Callers change the staged options; the
/// loop's thread takes them when an attempt begins. Options that were taken never change: setting
/// another option then makes a copy.
struct StagedOptions<Configuration: Sendable>: ~Copyable, Sendable {
    struct State: Sendable {
        /// In memory of its own, because most options never change once they are taken.
        fileprivate(set) var options: Shared<Configuration>
        /// nil for the loop's own.
        var reachability: Reachability?
        fileprivate(set) var isStarted = false
        /// The caller's answer is awaited, so options may be changed.
        fileprivate(set) var awaitsAnswer = false

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
    ///   - begun: the event after which options can no longer be set, for messages: "the long poll
    ///     is started".
    ///   - isAsked: true inside a handler that may change options.
    /// - Throws: `.state` if they may not be changed now.
    func change(
        before begun: String, isAsked: Bool,
        _ change: (inout State) throws(RealtimeError) -> Void
    ) throws(RealtimeError) {
        // The old reachability is released without the lock, because it may hold user data.
        // Everything else is changed in place.
        var old: Reachability?
        defer { withExtendedLifetime(old) {} }
        try state.withLock { state throws(RealtimeError) in
            guard !state.isStarted || isAsked || state.awaitsAnswer else {
                throw RealtimeError(.state, "an option must be set before \(begun)")
            }
            old = state.reachability
            try change(&state)
        }
    }

    /// Changes options that are only read at the start.
    /// - Throws: `.state` after the start, even inside handlers.
    func changeOnce(
        before begun: String, _ change: (inout State) throws(RealtimeError) -> Void
    ) throws(RealtimeError) {
        try self.change(before: begun, isAsked: true) { state throws(RealtimeError) in
            guard !state.isStarted else {
                throw RealtimeError(
                    .state, "this option is read only once: it must be set before \(begun)")
            }
            try change(&state)
        }
    }

    /// Reads options. The pointer is valid until `body` returns.
    func read<Result: Sendable, Failure: Error>(
        _ body: (UnsafePointer<Configuration>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try state.withLock { state throws(Failure) in
            // Not `&state.options.value`: that would be a write, while the loop's thread reads.
            try withUnsafePointer(to: state.options.value, body)
        }
    }

    /// nil for the loop's own.
    var reachability: Reachability? { state.withLock { $0.reachability } }

    var isStarted: Bool { hasStarted.load(ordering: .acquiring) }

    /// Starts objects that start with their first use.
    /// - Returns: whether this was the first call.
    func start() -> Bool {
        if isStarted { return false }
        return state.withLock { state in
            defer { begin(&state) }
            return !state.isStarted
        }
    }

    /// - Parameter prepare: makes a value from the options. If it throws, the object is not
    ///   started.
    /// - Throws: `.state` if it was already started.
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

    /// Lets other threads change options until `take`: credentials are being fetched, or an attempt
    /// was deferred.
    func awaitAnswer() { state.withLock { $0.awaitsAnswer = true } }

    /// Returns the current options, and ends `awaitAnswer`.
    /// - Parameter same: returns shared options that are equal to its argument, or the argument.
    @discardableResult
    func take(_ same: (Shared<Configuration>) -> Shared<Configuration> = { $0 }) -> State {
        state.withLock { state in
            state.awaitsAnswer = false
            state.options = same(state.options)
            return state
        }
    }
}
