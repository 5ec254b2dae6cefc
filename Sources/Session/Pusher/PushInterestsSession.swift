package import Wire

/// The machine of push interests: one registration of the device, and a queue of calls about its
/// interests, one at a time. It is independent of the connection.
package struct PushInterestsSession: ActionMachine, Sendable {
    /// What the application asks for.
    package enum Call: Sendable, Equatable {
        case subscribe(String)
        case unsubscribe(String)
        /// Replaces all interests.
        case setSubscriptions([String])
    }

    package enum Action: Sendable {
        /// Make the request, and report its answer by `answered`.
        case request(UInt64, PushInterestsRequest)
        case cancel(UInt64)

        // To the application.
        case registered(clientID: String)
        case registrationFailed(RealtimeError)
        case done(Call)
        /// - Parameter error: of the last of `attemptLimit` attempts.
        case failed(Call, RealtimeError)
    }

    /// How often a call is attempted in all.
    package static let attemptLimit = 6
    /// How many calls may wait; further ones fail.
    package static let queueLimit = 1_000

    private let key: String
    private let baseURL: String
    /// nil until the device is registered.
    package private(set) var clientID: String?
    private var calls: [Call] = []
    private var registration: UInt64?
    private var current: UInt64?
    private var attempts: Attempts
    private var actions = ActionQueue<Action>()
    private var lastNumber: UInt64 = 0

    package init(key: String, baseURL: String = PushInterestsRequest.defaultBaseURL) {
        self.key = key
        self.baseURL = baseURL
        var delays = BackoffConfiguration(squaresFrom: 1, maximum: .longestOption)
        delays.attemptLimit = PushInterestsSession.attemptLimit - 1
        attempts = Attempts(delays)
    }

    // MARK: The application

    /// Registers the device. A registration in progress is replaced.
    /// - Parameter platform: such as `apns`.
    package mutating func register(token: [UInt8], platform: String) {
        if let registration { actions.append(.cancel(registration)) }
        lastNumber += 1
        registration = lastNumber
        actions.append(
            .request(
                lastNumber,
                .register(token: token, platform: platform, key: key, baseURL: baseURL)))
    }

    /// Queues a call. It waits for the registration, and for the calls before it.
    package mutating func call(_ call: Call) {
        guard calls.count < PushInterestsSession.queueLimit else {
            let error = RealtimeError(
                .queueFull, "\(PushInterestsSession.queueLimit) calls about push interests wait")
            return actions.append(.failed(call, error))
        }
        calls.append(call)
        if calls.count == 1 { begin() }
    }

    /// Drops all calls, because the object is closed.
    package mutating func close() {
        for number in [registration, current] {
            if let number { actions.append(.cancel(number)) }
        }
        (registration, current) = (nil, nil)
        calls = []
        attempts.begin()
    }

    // MARK: The answers

    /// - Parameter result: the body of an answer with a status of 200 to 299; otherwise an error,
    ///   with the response if there is one.
    package mutating func answered(
        _ number: UInt64, _ result: Result<[UInt8], RealtimeError>, now: Instant
    ) {
        if number == registration {
            registration = nil
            register(result)
        } else if number == current {
            current = nil
            finish(result, now)
        }
    }

    private mutating func register(_ result: Result<[UInt8], RealtimeError>) {
        do throws(RealtimeError) {
            let body = try result.get()
            let id = try body.withUnsafeBufferPointer { body throws(RealtimeError) in
                try PushInterestsRequest.clientID(inReply: UnsafeRawBufferPointer(body))
            }
            clientID = id
            actions.append(.registered(clientID: id))
            if current == nil, attempts.wakeUp == nil { begin() }
        } catch {
            actions.append(.registrationFailed(error))
        }
    }

    private mutating func finish(_ result: Result<[UInt8], RealtimeError>, _ now: Instant) {
        guard let call = calls.first else { return }
        switch result {
        case .success: actions.append(.done(call))
        case .failure(let error):
            if case .retry = attempts.ended(now: now, random: 0) { return }
            actions.append(.failed(call, error))
        }
        attempts.begin()
        attempts.forgetFailures()
        calls.removeFirst()
        begin()
    }

    /// Makes the request of the first call, if the device is registered.
    private mutating func begin() {
        guard let clientID, current == nil, let call = calls.first else { return }
        attempts.begin()
        lastNumber += 1
        current = lastNumber
        let request: PushInterestsRequest =
            switch call {
            case .subscribe(let interest):
                .subscribe(interest, clientID: clientID, key: key, baseURL: baseURL)
            case .unsubscribe(let interest):
                .unsubscribe(interest, clientID: clientID, key: key, baseURL: baseURL)
            case .setSubscriptions(let interests):
                .setSubscriptions(interests, clientID: clientID, key: key, baseURL: baseURL)
            }
        actions.append(.request(lastNumber, request))
    }

    // MARK: Time and actions

    package var wakeUp: Instant? { attempts.wakeUp }

    package mutating func timeReached(_ now: Instant) {
        if let due = attempts.wakeUp, due <= now { begin() }
    }

    package mutating func nextAction() -> Action? { actions.next() }
}
