internal import Session
internal import Wire

/// What options are checked for when they are used.
enum OptionCheck {
    static func limit(
        _ value: Duration?, _ name: String
    ) throws(RealtimeError) -> Duration {
        guard let value else { return .zero }
        guard value > .zero else {
            throw RealtimeError(.invalidArgument, "\(name) is \(value); nil turns it off")
        }
        return try delay(value, name)
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

    static func within(
        _ range: ClosedRange<Int>, _ value: Int, _ name: String
    ) throws(RealtimeError) -> Int {
        guard range.contains(value) else {
            throw RealtimeError(
                .invalidArgument,
                "\(name) is \(value), \(range.lowerBound) to \(range.upperBound) is expected")
        }
        return value
    }
}
