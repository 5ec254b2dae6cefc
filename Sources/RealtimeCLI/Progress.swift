import Glibc
import Realtime
import Synchronization

/// Shows the progress of a long transfer, in one line of a terminal that is overwritten.
final class Progress: Sendable {
    private struct State {
        var shownAt: ContinuousClock.Instant?
        var width = 0
    }

    private let state = Mutex(State())
    private let began = ContinuousClock.now

    /// Shorter transfers show nothing.
    private static let patience = Duration.seconds(1)
    private static let interval = Duration.milliseconds(200)

    /// Nil if standard error is not a terminal, or shows the received data.
    static func onTerminal(isOutputShown: Bool, _ console: Console) -> Progress? {
        let isSeen = isatty(STDERR_FILENO) == 1 && !console.isJSON
        return isSeen && !isOutputShown ? Progress() : nil
    }

    /// - Parameter total: 0 if it is not known.
    func report(_ what: String, _ count: UInt64, of total: UInt64) {
        let now = ContinuousClock.now
        guard now - began >= Progress.patience else { return }
        let share = total > 0 ? " of \(Progress.size(total)), \(count * 100 / max(total, 1)) %" : ""
        show("\(what) \(Progress.size(count))\(share)", now)
    }

    /// Removes the line.
    func end() {
        state.withLock { state in
            guard state.width > 0 else { return }
            let width = min(state.width, Screen.size(of: STDERR_FILENO).columns - 1)
            Progress.write("\r" + String(repeating: " ", count: max(0, width)) + "\r")
            state.width = 0
        }
    }

    private func show(_ text: String, _ now: ContinuousClock.Instant) {
        state.withLock { state in
            if let last = state.shownAt, now - last < Progress.interval { return }
            state.shownAt = now
            // The last column stays empty: some terminals go to the next line after it.
            let columns = Screen.size(of: STDERR_FILENO).columns - 1
            // In a terminal that was made narrower, the old line takes two, and stays there.
            state.width = min(state.width, columns)
            let line = TextTable.cut(text, to: columns)
            let width = TextTable.columns(of: line)
            let blanks = max(0, state.width - width)
            Progress.write("\r" + line + String(repeating: " ", count: blanks))
            state.width = width
        }
    }

    private static func write(_ text: String) {
        Console.write(Array(text.utf8), to: STDERR_FILENO)
    }

    /// "12.3 MB"
    private static func size(_ bytes: UInt64) -> String {
        let units = ["bytes", "kB", "MB", "GB", "TB"]
        var value = Double(bytes)
        var unit = 0
        while value >= 1000, unit < units.count - 1 {
            value /= 1000
            unit += 1
        }
        let text = unit == 0 ? "\(bytes)" : "\((value * 10).rounded() / 10)"
        return "\(text) \(units[unit])"
    }
}
