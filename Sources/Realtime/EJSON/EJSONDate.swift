internal import Engine
public import Wire

/// A date as EJSON has it: whole milliseconds since 1970-01-01 UTC. `RealtimeFoundation` converts
/// it from and to `Date`, and `Date` may also be used in its place.
public struct EJSONDate: Hashable, Comparable, Sendable, EJSONConvertible {
    /// Negative before 1970.
    public var milliseconds: Int64

    public init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// The present time, by the clock of the system.
    public static var now: EJSONDate {
        EJSONDate(milliseconds: Engine.Loop.wallClockMilliseconds())
    }

    public var ejson: EJSON { .date(milliseconds) }

    public init?(ejson: EJSON) {
        guard case .date(let milliseconds) = ejson else { return nil }
        self.init(milliseconds: milliseconds)
    }

    public static func < (left: EJSONDate, right: EJSONDate) -> Bool {
        left.milliseconds < right.milliseconds
    }

    /// The date that is later by a time, which is cut to milliseconds. Beyond what EJSON can
    /// express, it is the last date.
    public static func + (date: EJSONDate, time: Duration) -> EJSONDate {
        date.moved(by: time)
    }

    /// The date that is earlier by a time; see `+`.
    public static func - (date: EJSONDate, time: Duration) -> EJSONDate {
        date.moved(by: .zero - time)
    }

    /// The time from the second date to the first.
    public static func - (left: EJSONDate, right: EJSONDate) -> Duration {
        .milliseconds(left.milliseconds) - .milliseconds(right.milliseconds)
    }

    private func moved(by time: Duration) -> EJSONDate {
        let step = time.attoseconds / 1_000_000_000_000_000
        return EJSONDate(milliseconds: Int64(clamping: Int128(milliseconds) + step))
    }
}
