/// The schedule for probing the WebSocket while a lower leg is in use (docs/spreadbot.md, B12).
struct SpreadbotUpgrade: Sendable {
    /// When the next probe is due; nil for never, or during a probe.
    private(set) var due: Instant?
    /// The number of the current probe.
    private(set) var probe: UInt64?
    /// The generation of the tokens that the probe uses.
    private(set) var generation: UInt64 = 0
    /// The generation of the tokens that were refreshed because the previous probe was refused.
    var refusedGeneration: UInt64?
    private var interval = Duration.zero

    /// The WebSocket is in use, or a new connection begins.
    mutating func reset(_ configuration: SpreadbotConfiguration) {
        interval = configuration.upgradeInterval
        refusedGeneration = nil
        due = nil
    }

    /// A lower leg is open.
    mutating func arm(_ now: Instant) {
        guard interval > .zero, due == nil, probe == nil else { return }
        due = now + interval
    }

    mutating func disarm() { due = nil }

    mutating func begin(_ number: UInt64, _ generation: UInt64) {
        due = nil
        probe = number
        self.generation = generation
    }

    /// The network has changed, so the WebSocket may work now.
    mutating func bringForward(_ time: Instant) {
        if let due, time < due { self.due = time }
    }

    mutating func failed(_ configuration: SpreadbotConfiguration) {
        interval = min(interval * 2, max(configuration.maxUpgradeInterval, interval))
    }

    mutating func takeProbe() -> UInt64? { exchange(&probe, with: nil) }
}

// Returns from a lower leg to the WebSocket.
extension SpreadbotSession {
    mutating func dropProbe() {
        if let probe = upgrade.takeProbe() { act(.dropProbe(probe)) }
    }

    mutating func beginProbe(_ now: Instant) {
        guard case .open = stage, !sends.hasFramesInFlight else { return }
        let attempt = makeAttempt(.webSocket, cursor: "")
        upgrade.begin(attempt.number, tokens.generation)
        act(.probe(attempt))
    }

    /// The probe succeeded. The current leg is replaced by a WebSocket with the cursor.
    package mutating func probeOpened(_ number: UInt64, now: Instant) {
        guard upgrade.probe == number else { return }
        dropProbe()
        upgrade.refusedGeneration = nil
        guard case .open(let leg) = stage,
            let top = configuration.transports.firstIndex(of: .webSocket), top < rung
        else { return }
        if settle(now) { wasRefreshed = false }
        act(.detach(leg))
        rungs[top].unsupportedUntil = nil
        rung = top
        attempts.forgetFailures()
        dial(now)
    }

    /// - Parameter isUnauthorized: the probe's token was refused. A lower leg may last long with a
    ///   token that has expired.
    package mutating func probeEnded(
        _ number: UInt64, isUnauthorized: Bool = false, now: Instant
    ) {
        guard upgrade.probe == number else { return }
        dropProbe()
        upgrade.failed(configuration)
        if isUnauthorized { refreshForProbe() } else { upgrade.refusedGeneration = nil }
        if case .open = stage { upgrade.arm(now) }
    }

    private mutating func refreshForProbe() {
        let generation = tokens.generation
        guard tokens.canRefresh, upgrade.generation == generation else { return }
        // If a server refuses fresh tokens too, do not ask for more.
        guard upgrade.refusedGeneration.map({ $0 == generation }) ?? true else { return }
        upgrade.refusedGeneration = generation
        tokens.refuse()
        beginRefresh()
    }
}
