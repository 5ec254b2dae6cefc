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
package final class Reachability: @unchecked Sendable {
    package enum Mode: Int32, Sendable {
        /// By the kernel's links, addresses and routes.
        case auto = 0
        /// By `setOnline`.
        case manual = 1
        case always = 2
    }

    package let loop: Loop

    // Any thread.
    private let modeNumber: Atomic<Int32>
    private let manualOnline = Atomic<Bool>(true)

    // The loop's owner only.
    private var observers: [ObjectIdentifier: Observer] = [:]
    private var onChange: ((_ isOnline: Bool) -> Void)?
    private var toldOnline = true

    private struct Observer {
        weak var object: (any ReachabilityObserver)?
    }

    package init(on loop: Loop, mode: Mode) throws(RealtimeError) {
        try loop.checkUsable()
        self.loop = loop
        modeNumber = Atomic(mode.rawValue)
    }

    package var mode: Mode { Mode(rawValue: modeNumber.load(ordering: .relaxed)) ?? .always }

    /// Whether a host known by name counts as reachable. Any thread.
    package var isOnline: Bool {
        switch mode {
        case .auto, .always: true
        case .manual: manualOnline.load(ordering: .relaxed)
        }
    }

    /// Whether an attempt to connect there makes sense now. The loop's owner only.
    package func isReachable(_ url: HTTPURL, by network: NetworkConfiguration) -> Bool {
        isOnline
    }

    // MARK: Changes

    /// Any thread.
    package func setMode(_ mode: Mode) throws(RealtimeError) {
        try loop.checkUsable()
        modeNumber.store(mode.rawValue, ordering: .relaxed)
        loop.perform { [self] in changed() }
    }

    /// What manual mode says; kept for it in another mode. Any thread.
    package func setOnline(_ isOnline: Bool) throws(RealtimeError) {
        try loop.checkUsable()
        manualOnline.store(isOnline, ordering: .relaxed)
        loop.perform { [self] in changed() }
    }

    /// Has `handler` called, on the loop's thread, each time `isOnline` has changed. Any thread.
    package func setOnChange(_ handler: ((_ isOnline: Bool) -> Void)?) throws(RealtimeError) {
        try loop.checkUsable()
        loop.perform { [self] in
            toldOnline = isOnline
            onChange = handler
        }
    }

    /// The loop's owner only; the observer is not kept alive.
    func add(_ observer: any ReachabilityObserver) {
        observers[ObjectIdentifier(observer)] = Observer(object: observer)
    }

    func remove(_ observer: any ReachabilityObserver) {
        observers[ObjectIdentifier(observer)] = nil
    }

    private func changed() {
        for observer in observers.values { observer.object?.reachabilityChanged() }
        observers = observers.filter { $0.value.object != nil }
        let isOnline = isOnline
        guard isOnline != toldOnline else { return }
        toldOnline = isOnline
        onChange?(isOnline)
    }
}
