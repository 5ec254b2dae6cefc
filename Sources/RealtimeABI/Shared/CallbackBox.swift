import CShims
import Engine
import Session
import Wire

/// A C callback with its user data. `destroy` runs exactly once, when the last reference is
/// released: after the last call that could receive the data, or at once if the setter fails.
///
/// Unchecked because the C contract allows `user` to be used on the loop's thread and destroyed on
/// any.
final class CallbackBox<Function>: @unchecked Sendable {
    let function: Function?
    let user: UnsafeMutableRawPointer?
    private let destroy: rt_destroy_fn?

    init(_ function: Function?, _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?) {
        self.function = function
        self.user = user
        self.destroy = destroy
    }

    deinit { destroy?(user) }
}

func setThreadHook(_ box: CallbackBox<rt_thread_fn>) {
    guard let function = box.function else { return LibraryThread.set(nil) }
    LibraryThread.set { event, name in
        name.withCharacters { function(event.rawValue, $0, box.user) }
    }
}

func setLog(level: rt_log_level, _ box: CallbackBox<rt_log_fn>) throws(RealtimeError) {
    guard let level = LogLevel(rawValue: level) else {
        throw RealtimeError(.invalidArgument, "level is \(level), 0 to 4 is expected")
    }
    guard let function = box.function else { return Log.set(.off, nil) }
    Log.set(level) { level, line in
        line.withCString { function(level.rawValue, $0, box.user) }
    }
}
