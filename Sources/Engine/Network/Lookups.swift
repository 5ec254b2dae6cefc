import CShims
import Glibc
import Session
import Synchronization
import Wire

/// Waits for the addresses of a host.
protocol LookupWaiter: AnyObject {
    /// Called on the loop's thread.
    func lookedUp(_ answer: LookupAnswer)
    /// The loop has ended.
    func loopClosed()
}

struct LookupAnswer: Sendable {
    var addresses: [shim_address] = []
    /// 0, or why there are none, a code of getaddrinfo().
    var code: Int32 = 0
}

/// The lookups of host names on a loop. Each runs on a thread of its own, because getaddrinfo()
/// blocks and cannot be cancelled. Nothing is cached: each attempt to connect asks again, so a host
/// that has moved is found. Attempts that want the same name while it is looked up share the
/// answer.
///
/// Unchecked because its fields belong to the loop's owner (see `Loop.enter`).
final class Lookups: LoopLocal, @unchecked Sendable {
    /// The most threads at a time. A name server that does not answer keeps one for each name; more
    /// names wait until a lookup has ended.
    static let mostThreads = 64

    /// The loop retains this object.
    private unowned(unsafe) let loop: Loop
    private var running: [Lookup] = []
    private var waiting: [Lookup] = []

    private init(on loop: Loop) { self.loop = loop }

    static func of(_ loop: Loop) -> Lookups { loop.local(Lookups.self) { Lookups(on: loop) } }

    /// Calls `waiter.lookedUp` in a later turn of the loop.
    /// - Parameter version: 4 or 6; 0 for both.
    func lookUp(_ host: String, version: Int32, for waiter: some LookupWaiter) {
        let known = (running + waiting).first {
            $0.version == version && $0.host.hasSameBytes(as: host)
        }
        if let known { return known.waiters.append(waiter) }
        let lookup = Lookup(host, version, by: self, on: loop)
        lookup.waiters = [waiter]
        waiting.append(lookup)
        startNext()
    }

    /// Forgets `waiter`. A lookup that runs continues, and serves the next attempt.
    func cancel(_ waiter: some LookupWaiter) {
        for lookup in running { lookup.waiters.removeAll { $0 === waiter } }
        for lookup in waiting { lookup.waiters.removeAll { $0 === waiter } }
        waiting.removeAll { $0.waiters.isEmpty }
    }

    private func startNext() {
        while running.count < Lookups.mostThreads, !waiting.isEmpty {
            let lookup = waiting.removeFirst()
            running.append(lookup)
            lookup.start()
        }
    }

    fileprivate func ended(_ lookup: Lookup, _ answer: LookupAnswer) {
        running.removeAll { $0 === lookup }
        let waiters = lookup.waiters
        lookup.waiters = []
        for waiter in waiters { waiter.lookedUp(answer) }
        startNext()
    }

    func loopClosed() {
        let all = running + waiting
        running = []
        waiting = []
        for lookup in all {
            lookup.abandon()
            for waiter in lookup.waiters { waiter.loopClosed() }
            lookup.waiters = []
        }
    }
}

/// One lookup, with its thread.
///
/// Unchecked because `waiters` belongs to the loop's owner.
private final class Lookup: @unchecked Sendable {
    let host: String
    let version: Int32
    var waiters: [any LookupWaiter] = []
    private let lookups: Lookups
    /// nil once the answer is not wanted any more.
    private let loop: Mutex<Loop?>

    init(_ host: String, _ version: Int32, by lookups: Lookups, on loop: Loop) {
        self.host = host
        self.version = version
        self.lookups = lookups
        self.loop = Mutex(loop)
    }

    func start() {
        var thread: UInt = 0
        let code = LibraryThread.start("realtime-lookup", &thread) { [self] in
            deliver(LookupAnswer(of: host, version: version, isNumeric: false))
        }
        if code == 0 { return shim_thread_detach(thread) }
        Log.write(.warning, Loop.systemError("starting a thread for a lookup", code).message)
        deliver(LookupAnswer(code: Int32(SHIM_LOOK_UP_AGAIN)))
    }

    /// The loop has ended. The thread cannot be stopped, but does not keep the loop.
    func abandon() { _ = takeLoop() }

    private func takeLoop() -> Loop? {
        loop.withLock { exchange(&$0, with: nil) }
    }

    private func deliver(_ answer: LookupAnswer) {
        takeLoop()?.enqueue { [self] in lookups.ended(self, answer) }
    }
}

extension LookupAnswer {
    /// Blocks, unless the host must be an address.
    init(of host: String, version: Int32, isNumeric: Bool) {
        self.init()
        var found = [shim_address](
            repeating: shim_address(), count: AddressRace.mostAddresses)
        var count = 0
        code = shim_look_up(host, version, isNumeric, &found, found.count, &count)
        addresses = Array(found.prefix(count))
    }
}
