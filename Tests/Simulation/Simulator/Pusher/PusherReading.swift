import Session

/// A second reading of the rules about ends of connections: what must follow, and when.
struct PusherReading {
    /// What a call tells the machine.
    enum Cause {
        case other
        case ended(code: Int?)
        /// A `pusher:error` before the connection was confirmed.
        case refused(code: Int)
    }

    enum Next: Equatable {
        case disconnected
        case retry(Duration)
        case waitForNetwork
    }

    private let world: World
    private let usesTLS: Bool
    private let mayUpgrade: Bool
    private let autoReconnect: Bool
    private var most: Int?
    private var gap: Duration?
    private var failures = 0
    private var openedAt: Instant
    private var confirmedAt: Instant?
    private var lastError: (code: Int, at: Instant)?
    private var wasShort = false
    private(set) var isUpgraded = false
    /// What the monitor has said last, and what it or the program has.
    private var isObserved = true
    private var hasNetwork = true

    init(_ world: World, _ configuration: PusherConfiguration) {
        self.world = world
        usesTLS = configuration.usesTLS
        mayUpgrade = configuration.upgradesOn4000
        autoReconnect = configuration.autoReconnect
        most = configuration.reconnectAttemptsMax
        gap = configuration.maxReconnectGap
        openedAt = world.now
    }

    mutating func setRetries(_ most: Int?, _ gap: Duration?) { (self.most, self.gap) = (most, gap) }

    mutating func observe(_ isOnline: Bool) {
        if isOnline != isObserved { (isObserved, hasNetwork) = (isOnline, isOnline) }
    }

    mutating func programReports(_ isOnline: Bool) { hasNetwork = isOnline }

    private var repeats: Bool { autoReconnect && most != 0 }

    /// Whether an attempt may begin.
    var mayAttempt: Bool { hasNetwork || !repeats }

    // MARK: What happens

    /// The user connects, having been disconnected.
    mutating func restarted() {
        failures = 0
        isUpgraded = false
        wasShort = false
    }

    mutating func attempted() {
        openedAt = world.now
        confirmedAt = nil
        lastError = nil
    }

    mutating func opened() { openedAt = world.now }

    mutating func confirmed() {
        confirmedAt = world.now
        failures = 0
    }

    mutating func failed(_ code: Int?) {
        if let code, code >= 4000, code <= 4299 { lastError = (code, world.now) }
    }

    // MARK: What must follow

    /// The connection is lost.
    mutating func next(_ cause: Cause) -> Next {
        let code: Int? =
            switch cause {
            case .other: nil
            case .refused(let code): code
            case .ended(let code): effective(code)
            }
        let isRenewal = code.map { $0 / 100 == 42 } ?? false
        let isShort = isRenewal && world.now - openedAt < .seconds(5)
        let isRepeated = isShort && wasShort
        wasShort = isShort
        let isDropped = confirmedAt.map { world.now - $0 < .seconds(1) } ?? false
        let upgrades = code == 4000 && mayUpgrade && !usesTLS && !isUpgraded
        if let code, code >= 4000, code < 4100, !upgrades { return .disconnected }
        guard repeats else { return .disconnected }
        hasNetwork = hasNetwork && isObserved
        guard hasNetwork else {
            if upgrades { isUpgraded = true }
            return .waitForNetwork
        }
        if let most, failures >= most { return .disconnected }
        var delay = Duration.seconds(failures * failures)
        if let gap { delay = min(delay, gap) }
        failures += 1
        if upgrades {
            isUpgraded = true
            return .retry(.zero)
        }
        if isRenewal, !isRepeated {
            delay = .zero
        } else if let code, code / 100 == 41 {
            delay = max(delay, .seconds(1))
        }
        return .retry(isDropped ? max(delay, .seconds(1)) : delay)
    }

    /// The code of the end, or of an error soon before.
    private func effective(_ code: Int?) -> Int? {
        if let code, code >= 4000 { return code }
        if let lastError, world.now - lastError.at <= .seconds(1) { return lastError.code }
        return code
    }
}
