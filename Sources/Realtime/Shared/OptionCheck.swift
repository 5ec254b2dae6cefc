internal import Session
internal import Wire

/// Checks options when they are used.
enum OptionCheck {
    static func limit(
        _ value: Duration?, _ name: String, atMost most: Duration = .longestOption
    ) throws(RealtimeError) -> Duration {
        guard let value else { return .zero }
        guard value > .zero else {
            throw RealtimeError(.invalidArgument, "\(name) is \(value); use nil for none")
        }
        let time = try delay(value, name)
        guard time <= most else {
            throw RealtimeError(
                .invalidArgument,
                "\(name) is \(time.readable), at most \(most.readable) is allowed")
        }
        return time
    }

    static func path(
        _ value: String?, _ name: String, atMost most: Int = .max
    ) throws(RealtimeError) -> String? {
        guard let value else { return nil }
        try FileName.check(value, name)
        guard !value.isEmpty, !value.utf8.contains(0), value.utf8.count <= most else {
            let reason =
                value.isEmpty
                ? "is empty; use nil for none"
                : value.utf8.contains(0)
                    ? "has a NUL character"
                    : "has \(value.utf8.count) bytes, at most \(most) are allowed"
            throw RealtimeError(.invalidArgument, "\(name) \(reason)")
        }
        return value
    }

    static func delay(_ value: Duration, _ name: String) throws(RealtimeError) -> Duration {
        guard value >= .zero, value <= .longestOption else {
            throw RealtimeError(
                .invalidArgument, "\(name) is \(value), 0 to a hundred years is expected")
        }
        return value
    }

    static func atLeast(
        _ least: Int, _ value: Int, _ name: String
    ) throws(RealtimeError) -> Int {
        guard value >= least else {
            throw RealtimeError(
                .invalidArgument, "\(name) is \(value), \(least) or more is expected")
        }
        return value
    }

    static func within<Value: Comparable>(
        _ range: ClosedRange<Value>, _ value: Value, _ name: String
    ) throws(RealtimeError) -> Value {
        guard range.contains(value) else {
            throw RealtimeError(
                .invalidArgument,
                "\(name) is \(value), \(range.lowerBound) to \(range.upperBound) is expected")
        }
        return value
    }
}
