import Glibc

/// Swift cannot catch its own traps. If a seed traps, or hangs while a watch is set, this prints
/// its number before the process dies.
package enum TrapReport {
    private static let signals = [SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGALRM]

    /// The line, ready for `write`: a signal handler must not allocate.
    nonisolated(unsafe) private static let line = UnsafeMutableRawBufferPointer.allocate(
        byteCount: 256, alignment: 1)
    nonisolated(unsafe) private static var length = 0
    nonisolated(unsafe) private static var before: [sigaction] = []

    /// Kills the process if one seed takes longer than this many seconds; 0 turns it off.
    nonisolated(unsafe) package static var watchSeconds: UInt32 = 0

    static func begin(_ scenario: String, _ seed: UInt64) {
        let text =
            "simulation: \(scenario) seed \(seed) trapped or hung — again, with a trace:"
            + " make simulate SCENARIO=\(scenario) SEED=\(seed)\n"
        length = min(text.utf8.count, line.count)
        line.copyBytes(from: text.utf8.prefix(length))
        before = signals.map { signal in
            var old = sigaction()
            var new = sigaction()
            new.__sigaction_handler.sa_handler = { number in
                _ = write(2, TrapReport.line.baseAddress, TrapReport.length)
                signal_default(number)
            }
            sigaction(signal, &new, &old)
            return old
        }
        if watchSeconds > 0 { alarm(watchSeconds) }
    }

    static func end() {
        if watchSeconds > 0 { alarm(0) }
        for (signal, var old) in zip(signals, before) { sigaction(signal, &old, nil) }
    }
}

/// Dies of the signal as if there were no handler.
private func signal_default(_ number: Int32) {
    var action = sigaction()
    action.__sigaction_handler.sa_handler = SIG_DFL
    sigaction(number, &action, nil)
    raise(number)
}
