import Dispatch
import Glibc
import Synchronization

/// Ctrl-C and SIGTERM: the first closes in order, the next ends at once.
///
/// Unchecked because Dispatch, whose sources any thread may use, does not say so.
final class Interruption: @unchecked Sendable {
    private let isInterrupted = Atomic<Bool>(false)
    private let sources: [any DispatchSourceSignal]

    /// - Parameter close: called once, on a thread of its own.
    init(close: @escaping @Sendable () -> Void) {
        sources = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            return DispatchSource.makeSignalSource(signal: number, queue: .global())
        }
        for source in sources {
            source.setEventHandler { [weak self] in self?.came(close) }
            source.resume()
        }
    }

    /// A little more than a closing handshake may take. What hangs, as a reader of our output that
    /// does not read, does not keep the process from its end.
    private static let patience = 12.0

    deinit { for source in sources { source.cancel() } }

    private func came(_ close: () -> Void) {
        if isInterrupted.exchange(true, ordering: .relaxed) {
            exit(ExitStatus.interrupted.rawValue)
        }
        DispatchQueue.global().asyncAfter(deadline: .now() + Interruption.patience) {
            exit(ExitStatus.interrupted.rawValue)
        }
        close()
    }

    /// - Throws: `CancellationError` when it came: whatever else the work came to, it was not done.
    func check() throws {
        if isInterrupted.load(ordering: .relaxed) { throw CancellationError() }
    }
}
