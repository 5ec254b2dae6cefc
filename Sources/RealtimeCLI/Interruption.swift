import Dispatch
import Glibc
import Synchronization

/// Where the signal handler writes.
nonisolated(unsafe) private var signalPipe: Int32 = -1

/// Ctrl-C and SIGTERM: the first closes in order, the next ends at once.
///
/// By a pipe of our own: a signal source of Dispatch's loses what comes before its own thread has
/// taken notice of it.
///
/// Unchecked because Dispatch, whose sources any thread may use, does not say so.
final class Interruption: @unchecked Sendable {
    private let isInterrupted = Atomic<Bool>(false)
    private var source: (any DispatchSourceRead)?
    private static let signals = [SIGINT, SIGTERM]

    /// - Parameter close: called once, on a thread of its own.
    init(close: @escaping @Sendable () -> Void) {
        var ends: [Int32] = [-1, -1]
        // Without one the signals do what they did: they end the process at once.
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
            while read(reading, &byte, 1) == 1 { self?.came(close) }
        }
        self.source = source
        source.resume()
        for number in Interruption.signals {
            signal(number) { _ in
                let cause = errno
                var byte: UInt8 = 0
                _ = write(signalPipe, &byte, 1)
                errno = cause
            }
        }
    }

    /// A little more than a closing handshake may take. What hangs, as a reader of our output that
    /// does not read, does not keep the process from its end.
    private static let patience = 12.0

    /// The pipe stays: a handler may be about to write to it.
    deinit {
        guard let source else { return }
        for number in Interruption.signals { signal(number, SIG_DFL) }
        source.cancel()
    }

    private func came(_ close: @escaping @Sendable () -> Void) {
        if isInterrupted.exchange(true, ordering: .relaxed) {
            exit(ExitStatus.interrupted.rawValue)
        }
        DispatchQueue.global().asyncAfter(deadline: .now() + Interruption.patience) {
            exit(ExitStatus.interrupted.rawValue)
        }
        // The next is heard meanwhile.
        DispatchQueue.global().async(execute: close)
    }

    /// - Throws: `CancellationError` when it came: whatever else the work came to, it was not done.
    func check() throws {
        if isInterrupted.load(ordering: .relaxed) { throw CancellationError() }
    }
}
