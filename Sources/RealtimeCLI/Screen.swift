import Glibc
import Synchronization

/// A terminal on standard output, of which the whole screen is drawn (ECMA-48, and xterm's second
/// screen).
enum Screen {
    private static let isEntered = Atomic<Bool>(false)

    /// Whether there is one that can be drawn on.
    static var isPossible: Bool {
        let name = getenv("TERM").map { String(cString: $0) } ?? ""
        return Console.isOutputTerminal && name != "dumb"
    }

    /// Its size.
    static var size: (columns: Int, rows: Int) { size(of: STDOUT_FILENO) }

    /// The size of any terminal; that of an old one if it is not known.
    static func size(of terminal: Int32) -> (columns: Int, rows: Int) {
        var size = winsize()
        let isKnown = ioctl(terminal, UInt(TIOCGWINSZ), &size) == 0
        guard isKnown, size.ws_col > 0, size.ws_row > 0 else { return (80, 24) }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Changes to the second screen, which `leave`, and the end of the process, leaves. It does not
    /// show what is typed, and cuts lines that it considers too long: terminals do not agree on how
    /// many columns some characters take.
    static func enter() {
        guard !isEntered.exchange(true, ordering: .relaxed) else { return }
        atexit { Screen.leave() }
        hasSettings = tcgetattr(STDIN_FILENO, &settings) == 0
        if !Interruption.isIgnored(SIGQUIT) { signal(SIGQUIT, quit) }
        if hasSettings {
            var silent = settings
            silent.c_lflag &= ~tcflag_t(ECHO)
            tcsetattr(STDIN_FILENO, TCSANOW, &silent)
        }
        write(["\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l"])
    }

    /// Shows the first screen again, as it was.
    static func leave() {
        guard isEntered.exchange(false, ordering: .relaxed) else { return }
        if hasSettings {
            // The shell must not get what was typed into the table. TCSAFLUSH would also wait for
            // the output, which may be stopped.
            tcflush(STDIN_FILENO, TCIFLUSH)
            tcsetattr(STDIN_FILENO, TCSANOW, &settings)
        }
        if !Interruption.isIgnored(SIGQUIT) { signal(SIGQUIT, SIG_DFL) }
        write(["\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"])
    }

    /// Gives the terminal's settings back, without writing: it may not accept output.
    static func abandon() {
        if isEntered.load(ordering: .relaxed), hasSettings {
            tcsetattr(STDIN_FILENO, TCSANOW, &settings)
        }
    }

    /// Draws the whole screen. Lines are overwritten and not cleared before, so that nothing
    /// flickers.
    static func draw(_ lines: [String]) {
        let rows = lines.map { "\($0)\u{1B}[K" }.joined(separator: "\n")
        write(["\u{1B}[H", rows, "\u{1B}[J"])
    }

    static func write(_ texts: [String]) {
        Console.write(Array(texts.joined().utf8), to: STDOUT_FILENO)
    }
}

/// The terminal's settings before `enter`, if standard input is one. Handlers of signals use them.
nonisolated(unsafe) private var settings = termios()
nonisolated(unsafe) private var hasSettings = false

/// Handles Ctrl-\, which ends the process also when it is blocked. It calls only functions that
/// handlers may call (POSIX, 2.4.3).
private func quit(_ number: Int32) {
    _ = write(STDOUT_FILENO, "\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l", 19)
    if hasSettings { tcsetattr(STDIN_FILENO, TCSANOW, &settings) }
    signal(number, SIG_DFL)
    raise(number)
}
