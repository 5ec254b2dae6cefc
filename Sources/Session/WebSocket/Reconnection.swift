package import Wire

/// Decides whether and when a lost connection is made again. A class, because most connections do
/// not have one. Each belongs to one connection.
package final class Reconnection {
    package enum Decision: Equatable {
        case giveUp
        /// Try again after this time. `attempt` counts from 1 after the last success.
        case retry(after: Duration, attempt: Int)
        /// Try again when the peer is reachable. This is not counted: `attempt` is the number of
        /// the attempt that failed, 0 if none did.
        case waitForNetwork(attempt: Int)
    }

    private var attempts: Attempts
    private let comesBackAfterNormalClose: Bool
    /// Further statuses after which another attempt is made.
    private let retryStatuses: Set<Int>

    /// The normal end, and codes after which another connection would repeat the fault.
    private static let finalCodes: [CloseCode] = [
        .normal, .protocolError, .unsupportedData, .invalidPayload, .policyViolation,
        .messageTooBig, .extensionRequired,
    ]

    /// - Parameters:
    ///   - afterNormalClose: whether to reconnect after close code 1000.
    ///   - retryStatuses: further statuses of a refused handshake after which to try again.
    package init(
        _ configuration: BackoffConfiguration, afterNormalClose: Bool = false,
        retryStatuses: Set<Int> = []
    ) {
        attempts = Attempts(configuration)
        self.retryStatuses = retryStatuses
        comesBackAfterNormalClose = afterNormalClose
    }

    package func opened(now: Instant) { attempts.opened(now: now) }

    /// Whether an attempt may be made now. What the program has reported since the monitor's last
    /// change holds.
    /// - Parameter isReachable: what the monitor finds.
    func mayBegin(isReachable: Bool, now: Instant) -> Bool {
        attempts.setOnline(isReachable, now: now, random: 0)
        return attempts.isOnline
    }

    /// An attempt waits for a network, and is due when one comes.
    func waitForNetwork(now: Instant) { attempts.restart(now: now) }

    /// See `Attempts.waitBegan`.
    func waitBegan(for name: String) -> RealtimeError? { attempts.waitBegan(for: name) }

    /// - Parameters:
    ///   - code: from the peer's close frame; nil without one.
    ///   - error: the failure, if there was one.
    ///   - isReachable: whether there is a network to reach the peer.
    ///   - wallClock: seconds since 1970, for a Retry-After that is a date.
    ///   - random: uniform in [0, 1).
    package func ended(
        code: CloseCode?, error: RealtimeError?, isReachable: Bool, now: Instant,
        wallClock: Int64, random: Double
    ) -> Decision {
        if let code, isFinal(code) { return .giveUp }
        if let error, isFinal(error) { return .giveUp }
        attempts.setOnline(isReachable, now: now, random: random)
        let asked = Attempts.asked(by: error?.response, wallClock: wallClock)
        return switch attempts.ended(asked: asked, now: now, random: random) {
        case .exhausted: .giveUp
        case .retry(let delay): .retry(after: delay, attempt: attempts.failures)
        case .waitForNetwork: .waitForNetwork(attempt: attempts.failures)
        }
    }

    /// The number of the attempt that is due, as reported to the user.
    package var attempt: Int { attempts.failures }

    /// When the next attempt is due; nil without a network.
    package var wakeUp: Instant? { attempts.wakeUp }

    /// See `Attempts.setOnline`.
    package func setOnline(_ online: Bool, now: Instant, random: Double) -> Bool {
        attempts.setOnline(online, now: now, random: random)
    }

    /// See `Attempts.retryNow`.
    package func retryNow(_ now: Instant) { attempts.retryNow(now) }

    private func isFinal(_ code: CloseCode) -> Bool {
        if code == .normal { return !comesBackAfterNormalClose }
        return Reconnection.finalCodes.contains(code)
    }

    private func isFinal(_ error: RealtimeError) -> Bool {
        switch error.code {
        case .httpStatus:
            guard let status = error.response?.status, (400...499).contains(status) else {
                return false
            }
            // With any other 4xx, the same request would be refused again.
            return !TemporaryStatus.refusals.contains(status) && !retryStatuses.contains(status)
        case .redirect, .insecureRedirect, .tooLarge, .invalidArgument, .invalidURL,
            .unsupportedScheme,
            .invalidHeader, .forked, .closed, .contentType, .noContent, .reconnectsExhausted, .gone,
            .deadline, .queueFull, .expired, .auth, .store, .method:
            return true
        case .state, .reentrant, .busy, .system, .invalidSubprotocol, .invalidUTF8,
            .invalidCloseCode, .closeReasonTooLong, .bufferFull, .cancelled, .notFound, .resolve,
            .connect, .tls, .proxy, .timeout, .handshake, .protocolViolation, .connectionLost:
            return false
        }
    }
}
