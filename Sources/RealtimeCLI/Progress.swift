import Glibc
import Realtime
import Synchronization

/// How far a long transfer has come, in one line of a terminal that is written over.
final class Progress: Sendable {
    private struct State {
        var toldAt: ContinuousClock.Instant?
        var width = 0
    }

    private let state = Mutex(State())
    private let began = ContinuousClock.now

    /// Shorter ones are over before anyone asks.
    private static let patience = Duration.seconds(1)
    private static let interval = Duration.milliseconds(200)

    /// Nil where nobody would see it, or where it would go among what is received.
    static func onTerminal(isOutputShown: Bool, _ console: Console) -> Progress? {
        let isSeen = isatty(STDERR_FILENO) == 1 && !console.isJSON
        return isSeen && !isOutputShown ? Progress() : nil
    }

    /// - Parameter total: 0 when it is not known.
    func tell(_ what: String, _ count: UInt64, of total: UInt64) {
        let now = ContinuousClock.now
        guard now - began >= Progress.patience else { return }
        let share = total > 0 ? " of \(Progress.size(total)), \(count * 100 / max(total, 1)) %" : ""
        show("\(what) \(Progress.size(count))\(share)", now)
    }

    /// Takes the line away.
    func end() {
        state.withLock { state in
            guard state.width > 0 else { return }
            Progress.write("\r" + String(repeating: " ", count: state.width) + "\r")
            state.width = 0
        }
    }

    private func show(_ line: String, _ now: ContinuousClock.Instant) {
        state.withLock { state in
            if let last = state.toldAt, now - last < Progress.interval { return }
            state.toldAt = now
            let blanks = max(0, state.width - line.utf8.count)
            Progress.write("\r" + line + String(repeating: " ", count: blanks))
            state.width = line.utf8.count
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
