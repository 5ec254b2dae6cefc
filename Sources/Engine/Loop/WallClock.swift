import Glibc

extension Loop {
    /// Seconds since 1970 by the wall clock, which can be set at any time. Use it only for dates
    /// that a server names, never for waiting.
    package static func wallClock() -> Int64 { Int64(time(nil)) }
}
