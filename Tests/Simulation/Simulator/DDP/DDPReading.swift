import Session
import Wire

/// A second reading of the rules about attempts and signs of life: what may happen, and when.
final class DDPReading {
    private let world: World
    private let putOff: DDPPutOff
    private let configuration: DDPConfiguration

    // Attempts.
    private var failures = 0
    /// The user has connected since: it is not defined what that does to the count.
    private var mayForget = false
    private var connectedAt: Instant?
    private var dialAt: Instant?
    /// An event that may start an attempt has happened in this instant.
    private var mayDialAt: Instant?
    private(set) var status = DDPStatus.offline

    // Signs of life.
    private var beats = false
    private var heardAt: Instant
    private var sentAt: Instant
    private var askedAt: Instant?
    /// The position of the ping that is to be answered, among all bytes sent.
    private var pingAt: UInt64 = 0
    /// When some of the bytes before it arrived last.
    private var progressAt: Instant?

    init(_ world: World, _ configuration: DDPConfiguration, _ putOff: DDPPutOff) {
        self.putOff = putOff
        self.world = world
        self.configuration = configuration
        heardAt = world.now
        sentAt = world.now
    }

    // MARK: Attempts

    /// Something happens that may start an attempt at once.
    func mayDial() {
        mayDialAt = world.now
        mayForget = true
    }

    /// There is a network again, or the application is back.
    func startsAfresh() {
        mayDial()
        failures = 0
    }

    func dials() {
        let isDue = dialAt.map { putOff.isTime($0) } ?? false
        world.require(
            mayDialAt == world.now || isDue, "an attempt that nothing has started")
        if isDue { world.count("reconnects") }
        dialAt = nil
    }

    func changed(_ change: DDPStatusChange) {
        world.trace("user", "status \(change.status) \(change.retryIn.map { "\($0)" } ?? "")")
        // The wait before an attempt.
        let isWait = change.status == .offline && change.error?.code == .connect
        if isWait, status == .offline { world.count("connects without a network") }
        world.require(
            change.status != status || change.retryIn != nil || isWait,
            "the status \(status) twice")
        world.require(status != .failed, "leaves the end")
        if status == .connected { disconnects() }
        status = change.status
        world.require((change.status == .waiting) == (change.retryIn != nil), "a delay, or none")
        switch change.status {
        case .connected:
            world.require(change.retryCount == 0, "counts failures when connected")
            connectedAt = world.now
        case .waiting: waits(change)
        case .failed:
            world.count("failed for good")
            world.require(!change.reason.isEmpty, "fails without a reason")
            dialAt = nil
        case .offline:
            dialAt = nil
            // Without a network a loss is not a failure, in the background it is.
            guard change.error != nil else { break }
            let counts = (mayForget ? 0 : failures)...(failures + 1)
            world.require(
                counts.contains(change.retryCount), "counts \(change.retryCount) failures")
            failures = change.retryCount
        case .connecting: break
        }
    }

    /// A connection that has lasted for a second ends a row of failures.
    private func disconnects() {
        let isStable = connectedAt.map { world.now - $0 >= .seconds(1) } ?? false
        connectedAt = nil
        world.count(isStable ? "stable" : "ended before it was stable")
        guard isStable else { return }
        failures = 0
        mayForget = false
    }

    private func waits(_ change: DDPStatusChange) {
        guard let delay = change.retryIn else { return }
        let before = mayForget ? 0...failures : failures...failures
        let fits = before.contains { isDelay(delay, after: $0) }
        world.require(fits, "waits \(delay) after \(failures) failures")
        if mayForget { failures = change.retryCount - 1 }
        failures += 1
        world.require(change.retryCount == failures, "counts \(change.retryCount) failures")
        dialAt = world.now + delay
    }

    private func isDelay(_ delay: Duration, after failures: Int) -> Bool {
        guard failures >= 2 else { return delay == .milliseconds(10) }
        var base = 1.0
        for _ in 0..<failures { base *= 2.2 }
        let seconds = Double(delay / .microseconds(1)) / 1e6
        let least = min(300, base) * 0.75 - 0.001
        return seconds >= least && seconds <= min(300, base) * 1.25 + 0.001
    }

    // MARK: Signs of life

    func connected(version: String) {
        beats = version != "pre1" && configuration.heartbeatInterval > .zero
        heardAt = world.now
        (askedAt, progressAt) = (nil, nil)
    }

    func ended() {
        beats = false
        (askedAt, progressAt) = (nil, nil)
    }

    func heard() {
        heardAt = world.now
        if progressAt != nil { world.count("answered a slow ping") }
        (askedAt, progressAt) = (nil, nil)
    }

    func sent() { sentAt = world.now }

    /// - Parameter position: of the ping, among all bytes sent.
    func pings(behind position: UInt64) {
        world.count("ping")
        let interval = configuration.heartbeatInterval
        let silence = world.now - heardAt
        world.require(beats, "a ping without a heartbeat")
        world.require(
            silence >= interval || world.now - sentAt >= interval, "a ping after \(silence)")
        guard silence >= interval, askedAt == nil else { return }
        askedAt = world.now
        pingAt = position
        progressAt = nil
    }

    /// All bytes up to this position have arrived at the server.
    func arrived(_ position: UInt64) {
        if askedAt != nil, position <= pingAt { progressAt = world.now }
    }

    /// The client drops a confirmed connection, and the user has not asked for that.
    func drops() {
        guard let askedAt else { return world.fail("a connection is lost without a ping") }
        let timeout = configuration.heartbeatTimeout
        let waited = world.now - askedAt
        // The time begins anew when it is over, if bytes before the ping have arrived in it.
        let isDue = (1...1000).contains { timeout * $0 == waited }
        world.require(isDue, "a connection is lost after \(waited)")
        if let progressAt {
            world.require(
                world.now - progressAt >= timeout, "a connection is lost while bytes arrive")
        }
        world.require(
            waited == timeout || progressAt != nil, "waits \(waited) though nothing arrives")
        world.count(waited == timeout ? "no pong" : "no pong after a slow ping")
    }

    /// The longest time after which a dead connection is found out.
    var patience: Duration {
        configuration.heartbeatInterval * 2 + configuration.heartbeatTimeout
    }

    /// After each turn.
    func check() {
        guard beats else { return }
        let lifeAt = max(heardAt, progressAt.map { $0 + configuration.heartbeatTimeout } ?? heardAt)
        world.require(world.now - lifeAt <= patience, "believes in a dead connection")
        world.require(world.now - sentAt <= patience, "is silent for too long")
    }
}
