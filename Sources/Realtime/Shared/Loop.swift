internal import Engine
public import Wire

/// An event loop. The I/O and callbacks of the objects created on it happen on its thread, one
/// callback at a time. `Loop.shared` runs by itself and suits most programs. A loop that you create
/// is driven by `run`, by `start`, or by calling `dispatch` from a host's loop that watches
/// `descriptor`. All members may be used on any thread.
public final class Loop: Sendable {
    let engine: Engine.Loop

    /// The process's loop, on a thread of its own that starts with the first use.
    public static let shared: Loop = {
        do throws(RealtimeError) {
            let loop = try Loop()
            try loop.start()
            return loop
        } catch {
            preconditionFailure("the shared loop could not be started: \(error)")
        }
    }()

    /// Creates a loop. It opens three descriptors and starts no thread.
    /// - Throws: `.system` if no descriptors are left.
    public init() throws(RealtimeError) { engine = try Engine.Loop() }

    deinit { engine.close() }

    /// Readable when `dispatch` has work to do. For a host's own loop, level- or edge-triggered:
    /// when a `dispatch` leaves work, this becomes readable anew. Never read or close it.
    public var descriptor: Int32 { engine.hostDescriptor }

    /// Waits up to `timeout` for work (nil: without limit), then does all work that is ready, on
    /// this thread.
    /// - Throws: `.reentrant` inside a callback of this loop, `.busy` while another thread runs it.
    public func dispatch(timeout: Duration? = .zero) throws(RealtimeError) {
        guard let timeout else { return try engine.dispatch(timeout: -1) }
        let milliseconds = timeout / .milliseconds(1)
        try engine.dispatch(timeout: Int32(max(0, min(milliseconds.rounded(.up), 2_147_483_647))))
    }

    /// Dispatches until `stop`.
    public func run() throws(RealtimeError) { try engine.run() }

    /// Makes `run`, or the loop's own thread, return after the current turn. Does not wait.
    public func stop() throws(RealtimeError) { try engine.stop() }

    /// Runs the loop on a thread of its own.
    public func start() throws(RealtimeError) { try engine.start() }

    /// Stops the loop's own thread and waits until it has ended.
    /// - Throws: `.reentrant` inside a callback.
    public func stopAndWait() throws(RealtimeError) { try engine.stopAndWait() }

    /// Runs `job` once on the loop's thread, in the order posted. It must not block: everything on
    /// the loop, also each time limit, waits for it.
    public func post(_ job: @escaping @Sendable () -> Void) throws(RealtimeError) {
        try engine.post(job)
    }

    /// Identifies a timer for `cancelTimer`.
    public struct TimerID: Hashable, Sendable {
        let number: UInt64
    }

    /// Runs `fire` on the loop's thread after `delay`, then every `interval` unless that is nil. It
    /// must not block, as a job of `post`. If the host dispatches late, missed intervals are
    /// skipped.
    @discardableResult
    public func addTimer(
        after delay: Duration, every interval: Duration? = nil,
        _ fire: @escaping @Sendable () -> Void
    ) throws(RealtimeError) -> TimerID {
        let delay = try OptionCheck.delay(max(.zero, delay), "delay")
        let interval = try OptionCheck.limit(interval, "interval")
        return TimerID(number: try engine.addTimer(after: delay, every: interval, fire))
    }

    /// - Throws: `.notFound` if it fired for the last time or was cancelled.
    public func cancelTimer(_ id: TimerID) throws(RealtimeError) {
        try engine.cancelTimer(id.number)
    }
}
