import ArgumentParser
import Glibc
import Realtime

/// Standard input, output and error, as all commands use them.
struct Console: Sendable {
    /// Everything goes to standard output as JSON lines, and nothing to standard error.
    let isJSON: Bool

    static var isInputTerminal: Bool { isatty(STDIN_FILENO) == 1 }
    static var isErrorTerminal: Bool { isatty(STDERR_FILENO) == 1 }
    static var isOutputTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Writes received data: the line or, with --json, the object. A line feed within the data is
    /// written as `\n`, so that each line is a message.
    func emit(_ line: @autoclosure () -> String, _ object: @autoclosure () -> JSONLine) {
        emit(text: line().withoutLineFeeds, object())
    }

    private func emit(text line: @autoclosure () -> String, _ object: @autoclosure () -> JSONLine) {
        let text =
            isJSON ? object().text : Console.isOutputTerminal ? Console.shown(line()) : line()
        Output.add(Array(text.utf8) + [0x0A])
    }

    /// What is done with line feeds, except in JSON.
    enum Form {
        /// Text is one line; bytes that are not text are unchanged, with a line end.
        case line
        /// Text may have several lines.
        case lines
        /// Everything is unchanged, without a line end, except on a terminal.
        case raw
    }

    /// Writes received bytes. In JSON they are the last member: "data" if they are text, otherwise
    /// "base64".
    func emit(_ bytes: [UInt8], isText: Bool = true, as form: Form = .line, _ object: JSONLine) {
        if form == .raw, !isJSON, !Console.isOutputTerminal { return Output.add(bytes) }
        let text = isText ? String(validating: bytes, as: UTF8.self) : nil
        if let text {
            emit(
                text: form == .line ? text.withoutLineFeeds : text, object.with("data", text))
        } else if isJSON {
            emit("", object.with("base64", JSONLine.base64(bytes)))
        } else if Console.isOutputTerminal {
            note("\(bytes.count) bytes, which are not shown on a terminal")
        } else {
            Output.add(bytes + [0x0A])
        }
    }

    /// Reports a failure that does not end the command.
    func reportLoss(_ error: RealtimeError, _ delay: Duration?, _ attempt: Int) {
        if error.code == .store {
            return note(error.message, JSONLine("warning").with(message: error.message))
        }
        note(
            "\(error.message); trying again \(Console.when(delay))",
            Console.loss(error, delay, attempt))
    }

    static func loss(_ error: RealtimeError, _ delay: Duration?, _ attempt: Int) -> JSONLine {
        JSONLine("lost").with("code", "\(error.code)").with(message: error.message)
            .with("delay_ms", delay).with("attempt", attempt)
    }

    /// Writes a remark to standard error or, with --json, the object to standard output.
    func note(_ text: @autoclosure () -> String, _ object: @autoclosure () -> JSONLine? = nil) {
        if isJSON {
            if let object = object() { emit("", object) }
        } else {
            Console.remark(text())
        }
    }

    /// Writes a line to standard error, after the output so far.
    static func remark(_ text: String) {
        Output.flush()
        let line = shown(PEM.hidden(in: FlagNames.put(into: text)).withoutLineFeeds)
        write(Array("realtime: \(line)\n".utf8), to: STDERR_FILENO)
    }

    /// Escapes what a terminal would obey or a reader not see, so that a peer cannot control the
    /// terminal. A log file with our standard error may be shown on a terminal later, so that is
    /// escaped, too.
    private static func shown(_ text: String) -> String {
        text.escaped { $0.isHidden && $0 != "\t" && $0 != "\n" }
    }

    static let network = "when there is a network"

    /// Says when the next attempt follows.
    static func when(_ delay: Duration?, _ wanted: String = network) -> String {
        guard let delay else { return wanted }
        if delay == .zero { return "at once" }
        return "in \((delay / .milliseconds(1)).rounded() / 1000) s"
    }

    /// Reports the error that ended the command, and returns the exit code.
    func fail(_ error: any Error) -> ExitCode {
        switch error {
        case let error as RealtimeError: return fail(error, error.advice)
        case let failure as DDPUnreachable: return fail(failure.error, failure.advice)
        case let failure as REST.Failure:
            return fail(RealtimeError(failure.code, failure.message))
        case let cut as CutResponse:
            let error = RealtimeError(cut.failure.code, cut.failure.message)
            let advice = [error.advice, cut.reason].compactMap(\.self)
            return fail(error, advice.joined(separator: " "))
        case let failure as DDPFailure:
            note(
                ([failure.message] + (failure.advice.map { [$0] } ?? [])).joined(separator: " "),
                failure.object)
            return ExitCode(ExitStatus(failure.error).rawValue)
        case let status as ExitStatus: return ExitCode(status.rawValue)
        case is CancellationError: return ExitCode(ExitStatus.interrupted.rawValue)
        default:
            note("\(error)", JSONLine("error").with(message: "\(error)"))
            return ExitCode(ExitStatus.other.rawValue)
        }
    }

    private func fail(_ error: RealtimeError, _ advice: String?) -> ExitCode {
        note(
            ([error.message + (error.message.hasSuffix(".") ? "" : ".")]
                + (advice.map { [$0] } ?? [])).joined(separator: " "),
            JSONLine("error").with("code", "\(error.code)").with(message: error.message)
                .with("status", error.response?.status).with("advice", advice))
        return ExitCode(ExitStatus(error).rawValue)
    }

    /// Lets `write` report a broken pipe, or a file above the limit of the process (ulimit -f), as
    /// an error, instead of a signal to one of the threads.
    static func ignoreSignalsOfWrites() {
        for number in [SIGPIPE, SIGXFSZ] { signal(number, SIG_IGN) }
    }

    /// Keeps the numbers of standard streams that are closed from files and sockets that are opened
    /// later: what is meant for the stream would get there. Using the stream fails as before.
    static func reserveStandardStreams() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            // The lowest free number is taken, which is this one.
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    /// Writes all bytes. If standard output has no reader or no room, the process ends, as other
    /// programs in a pipe do. Output that standard error does not accept is dropped.
    static func write(_ bytes: [UInt8], to descriptor: Int32) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let (count, number) = rest.withUnsafeBytes { bytes in
                Blocked.during {
                    (Glibc.write(descriptor, bytes.baseAddress, bytes.count), errno)
                }
            }
            if count < 0 {
                if number == EAGAIN { Blocked.during { Files.wait(descriptor, POLLOUT) } }
                if number == EINTR || number == EAGAIN { continue }
                return cannotWrite(descriptor, number)
            }
            rest = rest.dropFirst(count)
        }
    }

    private static func cannotWrite(_ descriptor: Int32, _ number: Int32) {
        if number == EPIPE { exit(ExitStatus.unread.rawValue) }
        guard descriptor == STDOUT_FILENO else { return }
        let cause = String(cString: strerror(number))
        let text = "realtime: standard output cannot be written: \(cause)\n"
        write(Array(text.utf8), to: STDERR_FILENO)
        exit(ExitStatus.other.rawValue)
    }
}

extension String {
    /// With `\n` in place of each line feed.
    var withoutLineFeeds: String {
        guard utf8.contains(0x0A) else { return self }
        return unicodeScalars.reduce(into: "") { result, scalar in
            if scalar == "\n" {
                result += "\\n"
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
    }

    /// Without line ends, and without what a terminal would obey or a reader not see.
    var oneLine: String { escaped { $0.isHidden } }

    fileprivate func escaped(_ isEscaped: (Unicode.Scalar) -> Bool) -> String {
        unicodeScalars.reduce(into: "") { result, scalar in
            if isEscaped(scalar) {
                result += "\\u{\(String(scalar.value, radix: 16))}"
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
    }
}

extension Unicode.Scalar {
    /// Whether it is a control character, ends a line, changes the direction of writing (Unicode
    /// Standard Annex #9) or has no width. The two joiners are shown: emoji and the words of some
    /// languages need them.
    var isHidden: Bool {
        if value < 0x7F { return value < 0x20 }
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: return true
        case .format: return value != 0x200C && value != 0x200D
        default: return false
        }
    }
}
