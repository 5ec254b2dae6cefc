import CShims
import Synchronization

/// The threads that the library starts: of loops, for lookups, and for files.
package enum LibraryThread {
    package enum Event: Int32 {
        case begin = 0
        case end = 1
    }

    /// Called on each thread when it begins, and before it ends.
    package typealias Hook = @Sendable (_ event: Event, _ name: StaticString) -> Void

    private static let hook = Mutex<Hook?>(nil)

    /// Threads that have begun keep their hook. Any thread.
    package static func set(_ new: Hook?) {
        // The old hook is released without the lock, like that of the log.
        let old = hook.withLock { exchange(&$0, with: new) }
        withExtendedLifetime(old) {}
    }

    /// Starts a thread with all signals blocked.
    /// - Parameter number: of the thread, for `shim_thread_join` or `shim_thread_detach`.
    /// - Parameter ended: runs last, after the hook.
    /// - Returns: 0 or an errno.
    static func start(
        _ name: StaticString, _ number: inout UInt, _ work: @escaping @Sendable () -> Void,
        ended: @escaping @Sendable () -> Void = {}
    ) -> Int32 {
        let start = Unmanaged.passRetained(LibraryThreadStart(name, work, ended))
        let code = name.withCharacters { name in
            shim_thread_start(&number, name, { LibraryThread.main($0) }, start.toOpaque())
        }
        if code != 0 { start.release() }
        return code
    }

    private static func main(_ user: UnsafeMutableRawPointer?) {
        guard let user else { return }
        let start = Unmanaged<LibraryThreadStart>.fromOpaque(user).takeRetainedValue()
        run(start)
        start.ended()
    }

    /// A function of its own, so that the hook is released before `ended` runs.
    @inline(never)
    private static func run(_ start: LibraryThreadStart) {
        let hook = hook.withLock { $0 }
        hook?(.begin, start.name)
        start.work()
        hook?(.end, start.name)
    }
}

/// The argument of a thread's main function.
private final class LibraryThreadStart {
    let name: StaticString
    let work: @Sendable () -> Void
    let ended: @Sendable () -> Void

    init(
        _ name: StaticString, _ work: @escaping @Sendable () -> Void,
        _ ended: @escaping @Sendable () -> Void
    ) {
        self.name = name
        self.work = work
        self.ended = ended
    }
}

extension StaticString {
    /// The text with the NUL that follows it.
    package func withCharacters<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
        body(UnsafeRawPointer(utf8Start).assumingMemoryBound(to: CChar.self))
    }
}
