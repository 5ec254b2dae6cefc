/// How long the server asks the client to wait (RFC 9110 §10.2.3): a number of seconds, or a date.
/// A date is compared with the response's own `Date`, so that the clocks need not agree; without
/// one, with the wall clock.
/// - Parameter wallClock: seconds since 1970.
/// - Returns: nil without a valid Retry-After header; zero for a date that has passed.
package func retryTime(of head: ResponseHead, wallClock: Int64) -> Duration? {
    head.values("Retry-After").first.flatMap {
        retryTime($0, date: head.values("Date").first, wallClock: wallClock)
    }
}

/// The same for a response that was kept.
package func retryTime(of response: HTTPResponse, wallClock: Int64) -> Duration? {
    response.header("Retry-After").flatMap {
        retryTime($0, date: response.header("Date"), wallClock: wallClock)
    }
}

/// Longer waits count as this, which is as good as never, and small enough to add to any time.
private let longestWait: Int64 = 100 * 366 * 86_400

private func retryTime(_ text: String, date: String?, wallClock: Int64) -> Duration? {
    let trimmed = String(Substring(text.utf8.trimmingBlanks))
    if !trimmed.isEmpty, trimmed.utf8.allSatisfy({ $0.isASCIIDigit }) {
        // A number that does not fit counts as the longest wait.
        return .seconds(min(Int64(trimmed) ?? longestWait, longestWait))
    }
    guard let then = parseHTTPDate(trimmed, now: wallClock) else { return nil }
    let now = date.flatMap { parseHTTPDate($0, now: wallClock) } ?? wallClock
    let (wait, overflow) = then.subtractingReportingOverflow(now)
    return .seconds(overflow ? 0 : min(max(wait, 0), longestWait))
}
