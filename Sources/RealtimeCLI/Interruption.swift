import Dispatch
import Glibc
import Synchronization

/// Where the signal handler writes.
nonisolated(unsafe) private var signalPipe: Int32 = -1

/// Handles Ctrl-C, SIGTERM and SIGHUP: the first signal closes the connection, the second ends the
/// process.
///
/// The handler writes to a pipe, because a Dispatch signal source loses signals that arrive before
/// its thread has noticed it.
///
/// Unchecked, because Dispatch sources are not declared Sendable, although any thread may use them.
final class Interruption: @unchecked Sendable {
    private let isInterrupted = Atomic<Bool>(false)
    private var source: (any DispatchSourceRead)?
    /// SIGHUP is ignored under nohup.
    private let signals = [SIGINT, SIGTERM] + (Interruption.isIgnored(SIGHUP) ? [] : [SIGHUP])

    /// - Parameter close: called once, on another thread.
    init(close: @escaping @Sendable () -> Void) {
        var ends: [Int32] = [-1, -1]
        // Without a pipe the signals keep their default: they end the process at once.
        guard pipe(&ends) == 0 else { return }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        let reading = ends[0]
        signalPipe = ends[1]
        let source = DispatchSource.makeReadSource(fileDescriptor: reading, queue: .global())
        source.setEventHandler { [weak self] in
            var byte: UInt8 = 0
            while read(reading, &byte, 1) == 1 { self?.received(close) }
        }
        self.source = source
        source.resume()
        for number in signals {
            signal(number) { _ in
                let cause = errno
                var byte: UInt8 = 0
                _ = write(signalPipe, &byte, 1)
                errno = cause
            }
        }
    }

    /// In seconds, a little more than a closing handshake may take. Then the process ends in any
    /// case.
    private static let patience = 12.0
    /// The process ends earlier if it is blocked for so long, because nothing reads its output.
    private static let blockedPatience = Duration.milliseconds(1250)
    private static let checkInterval = 0.25

    /// From now on a signal ends the process at once, with the same exit code, as its last output
    /// may still be blocked. Leaves the pipe open, because a handler may be about to write to it.
    deinit {
        guard let source else { return }
        for number in signals {
            signal(number) { _ in _exit(ExitStatus.interrupted.rawValue) }
        }
        source.cancel()
    }

    /// Whether the process ignores a signal, which it then should not handle.
    static func isIgnored(_ number: Int32) -> Bool {
        var current = sigaction()
        guard sigaction(number, nil, &current) == 0 else { return false }
        let ignored = unsafeBitCast(SIG_IGN, to: Int.self)
        return unsafeBitCast(current.__sigaction_handler.sa_handler, to: Int.self) == ignored
    }

    private func received(_ close: @escaping @Sendable () -> Void) {
        if isInterrupted.exchange(true, ordering: .relaxed) { Interruption.end() }
        DispatchQueue.global().asyncAfter(deadline: .now() + Interruption.patience) {
            Interruption.end()
        }
        Interruption.endIfBlocked(since: .now)
        // On another thread, so that this one can receive the next signal.
        DispatchQueue.global().async(execute: close)
    }

    private static func endIfBlocked(since start: ContinuousClock.Instant) {
        if Blocked.time(since: start) >= blockedPatience { end() }
        DispatchQueue.global().asyncAfter(deadline: .now() + checkInterval) {
            endIfBlocked(since: start)
        }
    }

    /// Ends the process, without the last output to a terminal that does not accept any.
    private static func end() -> Never {
        let moment = Duration.milliseconds(200)
        if Blocked.time(since: .now - moment) >= moment {
            Screen.abandon()
            _exit(ExitStatus.interrupted.rawValue)
        }
        exit(ExitStatus.interrupted.rawValue)
    }

    /// - Throws: `CancellationError` after a signal, whatever the result of the work was.
    func check() throws {
        if isInterrupted.load(ordering: .relaxed) { throw CancellationError() }
    }
}
