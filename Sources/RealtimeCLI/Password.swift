import Glibc
import Realtime
import Synchronization

/// A password, which must not be an argument: others could read it in the list of processes.
enum Password {
    static let variable = "REALTIME_PASSWORD"

    /// Returns the variable's value; otherwise asks on the terminal, or reads the first line of
    /// standard input if that is not a terminal.
    static func read(_ prompt: String) throws -> String {
        if let value = getenv(variable) { return String(cString: value) }
        guard Console.isInputTerminal else {
            let line = try SharedOptions.firstLine(of: "-", "password")
            return line
        }
        return try ask(prompt)
    }

    /// Asks without showing what is typed. A signal that ends or stops the process gives the
    /// terminal back first.
    private static func ask(_ prompt: String) throws -> String {
        guard tcgetattr(STDIN_FILENO, &usual) == 0 else {
            throw Files.failure("cannot be read without an echo", "-")
        }
        silent = usual
        silent.c_lflag &= ~tcflag_t(ECHO | ICANON)
        question = strdup(prompt)
        hasContinued.store(false, ordering: .relaxed)
        let signals =
            [SIGINT, SIGTERM] + [SIGHUP, SIGQUIT, SIGTSTP].filter { !Interruption.isIgnored($0) }
        for number in signals { signal(number, giveBack) }
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent)
        defer {
            tcsetattr(STDIN_FILENO, TCSAFLUSH, &usual)
            for number in signals { signal(number, SIG_DFL) }
            Console.write([0x0A], to: STDERR_FILENO)
        }
        writeQuestion()
        return String(decoding: try typed(), as: UTF8.self)
    }

    private static func typed() throws -> [UInt8] {
        let (end, backspace, delete, kill) = (4, 8, 127, 21)
        var password: [UInt8] = []
        var byte: UInt8 = 0
        typing: while withUnsafeMutableBytes(
            of: &byte,
            {
                Files.read(STDIN_FILENO, $0.bindMemory(to: UInt8.self))
            }) == 1
        {
            if hasContinued.exchange(false, ordering: .relaxed) { password = [] }
            switch Int(byte) {
            case 0x0A, 0x0D, end:
                guard !password.isEmpty else { break typing }
                return password
            case kill: password = []
            case backspace, delete:
                // A character may have several bytes.
                while let last = password.popLast(), last & 0xC0 == 0x80 {}
            default: password.append(byte)
            }
        }
        throw RealtimeError(.invalidArgument, "no password was typed")
    }
}

// What the handler of signals uses, which cannot capture anything.
nonisolated(unsafe) private var usual = termios()
nonisolated(unsafe) private var silent = termios()
nonisolated(unsafe) private var question: UnsafeMutablePointer<CChar>?

/// It was stopped and asks again, so what was typed before does not count.
private let hasContinued = Atomic<Bool>(false)

private func writeQuestion() {
    if let question { _ = write(STDERR_FILENO, question, strlen(question)) }
}

/// Handles a signal while a password is typed, on any thread. It calls only functions that handlers
/// may call (POSIX, 2.4.3).
private func giveBack(_ number: Int32) {
    let cause = errno
    tcsetattr(STDIN_FILENO, TCSANOW, &usual)
    _ = write(STDERR_FILENO, "\n", 1)
    switch number {
    case SIGTSTP:
        // Returns when the process continues.
        kill(getpid(), SIGSTOP)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent)
        hasContinued.store(true, ordering: .relaxed)
        writeQuestion()
        errno = cause
    case SIGQUIT:
        signal(number, SIG_DFL)
        raise(number)
    default: _exit(ExitStatus.interrupted.rawValue)
    }
}
