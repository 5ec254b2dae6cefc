import Glibc
package import Session
import Synchronization
package import Wire

/// Is notified when reachability changes. Called on the loop's thread.
protocol ReachabilityObserver: AnyObject {
    /// A host may have become reachable or unreachable; check with `isReachable`.
    func reachabilityChanged()
}

/// Whether there is a network to reach a peer by (R9): according to the kernel or to the caller, or
/// always. Being offline is a state, not an error: meanwhile no attempt is made or counted.
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`).
package final class Reachability: LoopLocal, @unchecked Sendable {
    package enum Mode: Int32, Sendable {
        /// By the kernel's links, addresses and routes. Acts as `always` if the system does not
        /// show them.
        case auto = 0
        /// By the last `setOnline`.
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
    private var reportedOnline = true
    /// A change has yet to be reported to the observers.
    private var isScheduled = false
    /// The number of changes, so that observers can ask once for each.
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

    /// The loop's default instance, made when first used.
    static func of(_ loop: Loop) throws(RealtimeError) -> Reachability {
        try loop.local(Reachability.self) { () throws(RealtimeError) in
            try Reachability(on: loop, mode: .auto)
        }
    }

    package var mode: Mode { Mode(rawValue: modeNumber.load(ordering: .relaxed)) ?? .always }

    /// Whether a host given by name counts as reachable. Any thread.
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

    /// Sets the state for manual mode; it is kept while another mode is set. Any thread.
    package func setOnline(_ isOnline: Bool) throws(RealtimeError) {
        try loop.checkUsable()
        manualOnline.store(isOnline, ordering: .relaxed)
        loop.perform { [self] in changed() }
    }

    /// Calls `handler` on the loop's thread each time `isOnline` has changed, starting from its
    /// current value. Any thread.
    package func setOnChange(_ handler: ((_ isOnline: Bool) -> Void)?) throws(RealtimeError) {
        try loop.checkUsable()
        let isOnline = isOnline
        loop.perform { [self] in
            reportedOnline = isOnline
            replaceOnChange(with: handler)
            changed()
        }
    }

    /// The caller released its handle. Once this has returned on the loop's thread, no call of the
    /// handler begins. Objects that use this instance keep using it. Any thread.
    package func abandon() {
        isAbandoned.store(true, ordering: .releasing)
        loop.perform { [self] in replaceOnChange(with: nil) }
    }

    /// Releases the old handler after the new one is set, because the destroy function of its user
    /// data may call us. Without the use after it, the optimizer would release the handler earlier.
    private func replaceOnChange(with handler: ((_ isOnline: Bool) -> Void)?) {
        let old = exchange(&onChange, with: handler)
        observeNetwork()
        withExtendedLifetime(old) {}
    }

    /// Notifies `observer` of changes, and retains it until it is removed or the loop ends. The
    /// loop's owner only.
    func add(_ observer: some ReachabilityObserver) {
        guard !loop.isTornDown else { return }
        observers[ObjectIdentifier(observer)] = observer
        loop.addResident(self)
        observeNetwork()
    }

    func remove(_ observer: some ReachabilityObserver) {
        observers[ObjectIdentifier(observer)] = nil
        if observers.isEmpty { loop.removeResident(self) }
        observeNetwork()
    }

    /// The change is reported in the loop's turn, never inside a call.
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

extension Reachability: LoopSource, LoopResident, NetworkObserver {
    func turn() {
        isScheduled = false
        for observer in observers.values { observer.reachabilityChanged() }
        let isOnline = isOnline
        guard isOnline != reportedOnline, !isAbandoned.load(ordering: .acquiring), loop.mayCall
        else {
            return
        }
        reportedOnline = isOnline
        onChange?(isOnline)
    }

    /// Not called: this has no descriptor, only a turn.
    func ready(_ events: UInt32) {}

    func loopClosed() {
        observers = [:]
        replaceOnChange(with: nil)
    }
}
