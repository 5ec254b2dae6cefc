import Glibc

extension Loop {
    /// Seconds since 1970 by the wall clock, which can be set at any time. Use it only for dates
    /// that a server names, never for waiting.
    package static func wallClock() -> Int64 { Int64(time(nil)) }

    /// The same in milliseconds.
    package static func wallClockMilliseconds() -> Int64 {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
    }
}
