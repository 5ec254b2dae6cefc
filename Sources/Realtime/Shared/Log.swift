internal import Engine

/// The library's log. A process has one, off by default. The library never writes to stdout or
/// stderr by itself, and never logs payloads or credentials.
public enum Log {
    /// How much is logged.
    public enum Level: Int, Sendable, Comparable {
        /// Failures that the library could not report in any other way.
        case error = 1
        /// Conditions that probably need attention.
        case warning = 2
        /// Connections that open, close and reconnect.
        case info = 3
        /// Every step.
        case debug = 4

        public static func < (a: Level, b: Level) -> Bool { a.rawValue < b.rawValue }
    }

    /// Sends log lines up to `level` to `sink`, which replaces the previous one; nil turns the log
    /// off.
    /// - Parameter sink: any thread that uses the library may call it, several at the same time,
    ///   also a loop's. It must not block: whatever that thread does waits for it.
    public static func send(
        upTo level: Level = .info, to sink: (@Sendable (_ level: Level, _ line: String) -> Void)?
    ) {
        guard let sink else { return Engine.Log.set(.off, nil) }
        Engine.Log.set(LogLevel(rawValue: Int32(level.rawValue)) ?? .debug) { level, line in
            sink(Level(rawValue: Int(level.rawValue)) ?? .error, line)
        }
    }
}
