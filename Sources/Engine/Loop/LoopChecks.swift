import CShims
import Glibc
import Synchronization
package import Wire

// Checks that a loop can be used. Any thread.
extension Loop {
    /// Whether this process is a fork of the one that made the loop.
    package var isForked: Bool { forkGeneration != shim_fork_generation() }

    package func checkNotForked() throws(RealtimeError) {
        if isForked {
            throw RealtimeError(
                .forked, "this loop was made before a fork; make a new one in the child process")
        }
    }

    package func checkUsable() throws(RealtimeError) {
        try checkNotForked()
        if isClosed.load(ordering: .acquiring) {
            throw RealtimeError(.closed, "the loop was freed")
        }
    }

    static func systemError(_ what: String, _ code: Int32) -> RealtimeError {
        let cause = String(cString: strerror(code))
        return RealtimeError(.system, "\(what): \(cause) (errno \(code))", systemError: code)
    }
}
