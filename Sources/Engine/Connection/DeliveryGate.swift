import Synchronization

/// The reasons why a connection may not deliver now. Any thread pauses, resumes and closes it; the
/// loop's thread checks it before each delivery.
struct DeliveryGate: ~Copyable, Sendable {
    private let reasons = Atomic<UInt8>(0)

    private static let paused: UInt8 = 1
    private static let full: UInt8 = 16
    private static let closed: UInt8 = 2
    private static let ending: UInt8 = 4
    private static let renewed: UInt8 = 8
    private static let yielding: UInt8 = 32

    private var now: UInt8 {
        @inline(__always) get { reasons.load(ordering: .acquiring) }
    }

    @inline(__always) var isOpen: Bool { now == 0 }

    var isPaused: Bool { now & DeliveryGate.pauses != 0 }

    private static let pauses = paused | full

    /// Why delivery is paused. It continues when neither reason is left.
    enum Pause {
        /// The caller paused it.
        case wanted
        /// The inbox is full.
        case full
    }

    /// Closed for good: nothing more is reported.
    var isClosed: Bool { now & DeliveryGate.closed != 0 }

    /// The caller wants no more messages, but the end is still reported.
    var isEnding: Bool { now & DeliveryGate.ending != 0 }

    /// What to do with a message.
    enum Verdict {
        case deliver
        /// Keep it: delivery is paused, or the handlers have changed.
        case wait
        case drop
    }

    @inline(__always) var verdict: Verdict {
        let now = now
        if now == 0 { return .deliver }
        return now & (DeliveryGate.closed | DeliveryGate.ending) == 0 ? .wait : .drop
    }

    // Each of these returns whether it changed anything.

    @discardableResult func pause(_ pause: Pause = .wanted) -> Bool {
        change(adding: DeliveryGate.reason(of: pause)) & DeliveryGate.pauses == 0
    }

    @discardableResult func close() -> Bool { add(DeliveryGate.closed) }

    func end() -> Bool { add(DeliveryGate.ending) }

    func resume(_ pause: Pause = .wanted) -> Bool {
        let reason = DeliveryGate.reason(of: pause)
        return change(removing: reason) & DeliveryGate.pauses == reason
    }

    /// Lets what follows wait for the next turn of the loop.
    func yield() { _ = add(DeliveryGate.yielding) }

    var isYielding: Bool { now & DeliveryGate.yielding != 0 }

    func endYield() { _ = remove(DeliveryGate.yielding) }

    /// Call when handlers have changed: a loop over several messages checks again before the next.
    func renew() { _ = add(DeliveryGate.renewed) }

    /// Whether handlers have changed since the last call.
    func wasRenewed() -> Bool {
        now & DeliveryGate.renewed != 0 && remove(DeliveryGate.renewed)
    }

    private static func reason(of pause: Pause) -> UInt8 {
        switch pause {
        case .wanted: paused
        case .full: full
        }
    }

    private func add(_ reason: UInt8) -> Bool { change(adding: reason) & reason == 0 }

    private func remove(_ reason: UInt8) -> Bool { change(removing: reason) & reason != 0 }

    /// - Returns: the previous reasons.
    private func change(adding reason: UInt8) -> UInt8 {
        reasons.bitwiseOr(reason, ordering: .acquiringAndReleasing).oldValue
    }

    private func change(removing reason: UInt8) -> UInt8 {
        reasons.bitwiseAnd(~reason, ordering: .acquiringAndReleasing).oldValue
    }
}
