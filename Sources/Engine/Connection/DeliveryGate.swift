import Synchronization

/// Why a connection delivers nothing for now. Any thread pauses, resumes and closes it; the loop's
/// thread looks before each delivery.
struct DeliveryGate: ~Copyable, Sendable {
    private let reasons = Atomic<UInt8>(0)

    private static let paused: UInt8 = 1
    private static let closed: UInt8 = 2

    var isOpen: Bool { reasons.load(ordering: .acquiring) == 0 }

    var isPaused: Bool { reasons.load(ordering: .acquiring) & DeliveryGate.paused != 0 }

    /// For good.
    var isClosed: Bool { reasons.load(ordering: .acquiring) & DeliveryGate.closed != 0 }

    // Each returns whether it changed anything.

    @discardableResult func pause() -> Bool { add(DeliveryGate.paused) }

    @discardableResult func close() -> Bool { add(DeliveryGate.closed) }

    func resume() -> Bool {
        let old = reasons.bitwiseAnd(~DeliveryGate.paused, ordering: .acquiringAndReleasing)
        return old.oldValue & DeliveryGate.paused != 0
    }

    private func add(_ reason: UInt8) -> Bool {
        reasons.bitwiseOr(reason, ordering: .acquiringAndReleasing).oldValue & reason == 0
    }
}
