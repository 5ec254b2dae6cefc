/// How long a server asks to wait (RFC 9110 §10.2.3): seconds, or a date that is taken relative to
/// the answer's own `Date`, so that clocks need not agree, and without one to the wall clock.
/// - Parameter wallClock: seconds since 1970.
/// - Returns: nil without the header, or when it is neither; zero for a date that has passed.
package func retryTime(of head: ResponseHead, wallClock: Int64) -> Duration? {
    head.values("Retry-After").first.flatMap {
        retryTime($0, date: head.values("Date").first, wallClock: wallClock)
    }
}

/// The same, of an answer that was kept.
package func retryTime(of response: HTTPResponse, wallClock: Int64) -> Duration? {
    response.header("Retry-After").flatMap {
        retryTime($0, date: response.header("Date"), wallClock: wallClock)
    }
}

/// More is as good as never, and keeps every sum with it exact.
private let longestWait: Int64 = 100 * 366 * 86_400

private func retryTime(_ text: String, date: String?, wallClock: Int64) -> Duration? {
    let trimmed = String(Substring(text.utf8.trimmingBlanks))
    if !trimmed.isEmpty, trimmed.utf8.allSatisfy({ $0.isASCIIDigit }) {
        // What does not fit is long enough.
        return .seconds(min(Int64(trimmed) ?? longestWait, longestWait))
    }
    guard let then = parseHTTPDate(trimmed, now: wallClock) else { return nil }
    let now = date.flatMap { parseHTTPDate($0, now: wallClock) } ?? wallClock
    let (wait, overflow) = then.subtractingReportingOverflow(now)
    return .seconds(overflow ? 0 : min(max(wait, 0), longestWait))
}
