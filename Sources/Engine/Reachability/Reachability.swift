import Glibc
package import Session
import Synchronization
package import Wire

/// Who wants to know when what can be reached changes. Called on the loop's thread.
protocol ReachabilityObserver: AnyObject {
    /// Another target may be reachable now, or no longer; `isReachable` tells.
    func reachabilityChanged()
}

/// Whether there is a network to reach a peer by (R9): by what the kernel says, by what the caller
/// says, or always. Offline is a state, not an error: who asks makes no attempt and counts none.
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`).
package final class Reachability: LoopLocal, @unchecked Sendable {
    package enum Mode: Int32, Sendable {
        /// By the kernel's links, addresses and routes; as `always` where it does not show them.
        case auto = 0
        /// By `setOnline`.
        case manual = 1
        case always = 2
    }

    package let loop: Loop
    private let watch: NetworkWatch

    // Any thread.
    private let modeNumber: Atomic<Int32>
    private let manualOnline = Atomic<Bool>(true)
    private let isAbandoned = Atomic<Bool>(false)

    // The loop's owner only.
    private var observers: [ObjectIdentifier: any ReachabilityObserver] = [:]
    private var onChange: ((_ isOnline: Bool) -> Void)?
    private var toldOnline = true
    /// Something may have changed that observers are not told yet.
    private var isScheduled = false
    /// How often something may have changed, so that observers can ask once for each change.
    private(set) var changes = 0

    package convenience init(on loop: Loop, mode: Mode) throws(RealtimeError) {
        try loop.checkUsable()
        self.init(of: loop, mode)
    }

    private init(of loop: Loop, _ mode: Mode) {
        self.loop = loop
        watch = NetworkWatch.of(loop)
        modeNumber = Atomic(mode.rawValue)
        begin(mode)
    }

    /// The one for all who are given none of their own, made at the first use.
    static func of(_ loop: Loop) throws(RealtimeError) -> Reachability {
        try loop.local(Reachability.self) { () throws(RealtimeError) in
            try Reachability(on: loop, mode: .auto)
        }
    }

    package var mode: Mode { Mode(rawValue: modeNumber.load(ordering: .relaxed)) ?? .always }

    /// Whether a host known by name counts as reachable. Any thread.
    package var isOnline: Bool {
        switch mode {
        case .auto: watch.monitor?.isOnline.load(ordering: .relaxed) ?? true
        case .manual: manualOnline.load(ordering: .relaxed)
        case .always: true
        }
    }

    /// Whether an attempt to connect there makes sense now. The loop's owner only.
    package func isReachable(_ url: HTTPURL, by network: NetworkConfiguration) -> Bool {
        guard mode == .auto, let monitor = watch.monitor else { return isOnline }
        return monitor.reaches(
            ReachabilityTarget.hosts(of: url, by: network) { name in
                getenv(name).map { String(cString: $0) }
            })
    }

    // MARK: Changes

    /// Any thread.
    package func setMode(_ mode: Mode) throws(RealtimeError) {
        try loop.checkUsable()
        modeNumber.store(mode.rawValue, ordering: .relaxed)
        begin(mode)
        loop.perform { [self] in changed() }
    }

    /// What manual mode says; kept for it in another mode. Any thread.
    package func setOnline(_ isOnline: Bool) throws(RealtimeError) {
        try loop.checkUsable()
        manualOnline.store(isOnline, ordering: .relaxed)
        loop.perform { [self] in changed() }
    }

    /// Has `handler` called, on the loop's thread, each time `isOnline` has changed from what it is
    /// now. Any thread.
    package func setOnChange(_ handler: ((_ isOnline: Bool) -> Void)?) throws(RealtimeError) {
        try loop.checkUsable()
        let isOnline = isOnline
        loop.perform { [self] in
            toldOnline = isOnline
            replaceOnChange(with: handler)
            changed()
        }
    }

    /// The caller gave it back: no call of its handler begins after this returned on the loop's
    /// thread. Those who were given it may use it on. Any thread.
    package func abandon() {
        isAbandoned.store(true, ordering: .releasing)
        loop.perform { [self] in replaceOnChange(with: nil) }
    }

    /// The old one is released after the new one is in place, because the destroy function of its
    /// user data may call us. Without a use behind it the optimizer would release it before.
    private func replaceOnChange(with handler: ((_ isOnline: Bool) -> Void)?) {
        let old = exchange(&onChange, with: handler)
        observeNetwork()
        withExtendedLifetime(old) {}
    }

    /// Notifies the observer of changes, and retains it, until it is removed. The loop's owner
    /// only.
    func add(_ observer: some ReachabilityObserver) {
        observers[ObjectIdentifier(observer)] = observer
        observeNetwork()
    }

    func remove(_ observer: some ReachabilityObserver) {
        observers[ObjectIdentifier(observer)] = nil
        observeNetwork()
    }

    /// Something may have changed: told in the loop's turn, never inside a call.
    func networkChanged() { changed() }

    private func changed() {
        changes &+= 1
        guard !isScheduled else { return }
        isScheduled = true
        loop.schedule(self)
    }

    /// Any thread.
    private func begin(_ mode: Mode) {
        if mode == .auto { _ = watch.start(on: loop) }
        loop.perform { [self] in observeNetwork() }
    }

    /// The monitor retains this object only while an observer or a handler depends on it.
    private func observeNetwork() {
        let matters = !observers.isEmpty || onChange != nil
        if matters, mode == .auto {
            watch.monitor?.add(self)
        } else {
            watch.monitor?.remove(self)
        }
    }
}

extension Reachability: LoopSource, NetworkObserver {
    func turn() {
        isScheduled = false
        for observer in observers.values { observer.reachabilityChanged() }
        let isOnline = isOnline
        guard isOnline != toldOnline, !isAbandoned.load(ordering: .acquiring), loop.mayCall else {
            return
        }
        toldOnline = isOnline
        onChange?(isOnline)
    }

    /// Scheduled for its turn alone: it has no descriptor.
    func ready(_ events: UInt32) {}

    func loopClosed() {
        observers = [:]
        replaceOnChange(with: nil)
    }
}
