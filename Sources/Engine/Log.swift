import Synchronization
import Wire

/// The level of a log line, and the most detailed level that is logged; the C ABI's `rt_log_level`.
public enum LogLevel: Int32, Comparable, Sendable {
    case off = 0
    case error = 1
    case warning = 2
    case info = 3
    case debug = 4

    public static func < (a: LogLevel, b: LogLevel) -> Bool { a.rawValue < b.rawValue }
}

/// The process's only log, off by default. Lines never contain payloads or credentials.
package enum Log {
    package typealias Sink = @Sendable (LogLevel, String) -> Void

    private static let level = Atomic<Int32>(LogLevel.off.rawValue)
    private static let sink = Mutex<Sink?>(nil)

    /// Sends lines up to `level` to `sink`. Any thread.
    package static func set(_ newLevel: LogLevel, _ newSink: Sink?) {
        // The old sink is released without the lock: the destroy function of its user data may log.
        let old = sink.withLock { exchange(&$0, with: newSink) }
        level.store(newSink == nil ? 0 : newLevel.rawValue, ordering: .relaxed)
        withExtendedLifetime(old) {}
    }

    package static func write(_ lineLevel: LogLevel, _ line: @autoclosure () -> String) {
        guard lineLevel.rawValue <= level.load(ordering: .relaxed) else { return }
        // The sink is called without the lock, so that it may use the library.
        let sink = sink.withLock { $0 }
        sink?(lineLevel, line().withoutControls)
    }
}
