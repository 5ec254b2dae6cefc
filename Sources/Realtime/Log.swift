internal import Engine

/// The library's log: off by default, one for the process. It never writes to stdout or stderr by
/// itself, and its lines hold neither payloads nor credentials.
public enum Log {
    /// How much it says.
    public enum Level: Int, Sendable, Comparable {
        /// Failures the library could not report any other way.
        case error = 1
        /// What probably needs a look.
        case warning = 2
        /// Connections opened, closed, retried.
        case info = 3
        /// Every step.
        case debug = 4

        public static func < (a: Level, b: Level) -> Bool { a.rawValue < b.rawValue }
    }

    /// Sends lines up to `level` to `sink`, in the place of the one before; nil turns the log off.
    /// - Parameter sink: called on any thread that uses the library, several at a time.
    public static func send(
        upTo level: Level = .info, to sink: (@Sendable (_ level: Level, _ line: String) -> Void)?
    ) {
        guard let sink else { return Engine.Log.set(.off, nil) }
        Engine.Log.set(LogLevel(rawValue: Int32(level.rawValue)) ?? .debug) { level, line in
            sink(Level(rawValue: Int(level.rawValue)) ?? .error, line)
        }
    }
}
