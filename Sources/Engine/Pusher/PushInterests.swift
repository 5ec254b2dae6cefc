package import Session
import Synchronization
package import Wire

/// The handlers of push notifications. They are called on the loop's thread.
///
/// Unchecked for the same reason as `PusherHandlers`.
package struct PushHandlers: EndpointHandlers, @unchecked Sendable {
    /// The device is registered, with this client id.
    package var registered: ((_ clientID: String) -> Void)?
    package var registrationFailed: ((RealtimeError) -> Void)?
    package var done: ((PushInterestsSession.Call) -> Void)?
    package var failed: ((PushInterestsSession.Call, RealtimeError) -> Void)?

    package init() {}
}

/// Registers a device for push notifications, and subscribes it to interests: does the I/O for
/// `PushInterestsSession`. It is independent of its Pusher connection, of which it has the options.
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`).
package final class PushInterests:
    ClientDriver<PushInterestsSession, PusherConfiguration, PushHandlers>, @unchecked Sendable
{
    // Any thread.
    private let registeredID = Mutex<String?>(nil)

    // The loop's owner only.
    private var client: RESTClient?
    /// The client's numbers of requests, by the session's.
    private var requests: [UInt64: UInt64] = [:]

    init(_ configuration: PusherConfiguration, on loop: Loop) {
        super.init(
            PushInterestsSession(key: configuration.key, baseURL: configuration.pushURL),
            configuration, on: loop)
    }

    // MARK: ClientDriver

    override class var kind: String { "push registration" }

    override func performNext() -> Bool {
        guard let action = session.nextAction() else { return false }
        perform(action)
        return true
    }

    override func closeNow() {
        // The client's handlers retain this object.
        client?.close()
        client = nil
        requests = [:]
        super.closeNow()
    }

    // MARK: Use; any thread

    /// The id of the registered device; nil before the registration.
    package var clientID: String? { registeredID.withLock { $0 } }

    /// Registers the device.
    /// - Parameter platform: such as `apns`.
    package func register(token: [UInt8], platform: String) throws(RealtimeError) {
        try checkOpen()
        start()
        onLoop { [self] in session.register(token: token, platform: platform) }
    }

    /// Subscribes the device to an interest, or ends that. Calls wait for the registration, and are
    /// made one after the other.
    package func call(_ call: PushInterestsSession.Call) throws(RealtimeError) {
        try checkOpen()
        start()
        onLoop { [self] in session.call(call) }
    }

    // MARK: The loop's thread

    private func perform(_ action: PushInterestsSession.Action) {
        switch action {
        case .request(let number, let request):
            do throws(RealtimeError) {
                try send(request, number)
            } catch {
                answered(number, .failure(error))
            }
        case .cancel(let number):
            if let id = requests.removeValue(forKey: number) { try? client?.cancel(id) }
        case .registered(let id):
            registeredID.withLock { $0 = id }
            handlers.registered?(id)
        case .registrationFailed(let error):
            Log.write(.warning, "the registration for push failed: \(error.message)")
            handlers.registrationFailed?(error)
        case .done(let call): handlers.done?(call)
        case .failed(let call, let error):
            Log.write(.warning, "a call about push interests failed: \(error.message)")
            handlers.failed?(call, error)
        }
    }

    private func send(_ request: PushInterestsRequest, _ number: UInt64) throws(RealtimeError) {
        let builder = try RESTRequestBuilder(sender(), request.method, request.url)
        try builder.setHeader(
            PushInterestsRequest.libraryHeader, PushInterestsRequest.library)
        try builder.setBody(request.body, type: PushInterestsRequest.mediaType)
        builder.handlers.done = { [self] result in
            guard requests.removeValue(forKey: number) != nil else { return }
            answered(number, PushInterests.answer(of: result))
        }
        requests[number] = try builder.send()
    }

    private static func answer(of result: RESTResult) -> Result<[UInt8], RealtimeError> {
        let body = result.body.copy
        guard let error = result.outcome.error else { return .success(body) }
        guard let head = result.outcome.head else { return .failure(error) }
        return .failure(
            RealtimeError(error.code, error.message, response: HTTPResponse(head, body: body)))
    }

    private func sender() throws(RealtimeError) -> RESTClient {
        if let client { return client }
        let new = try RESTClient(base: nil, on: loop)
        let configuration = configuration
        try new.configure { rest in configuration.setRequests(&rest) }
        try new.setReachability(options.reachability)
        client = new
        return new
    }

    private func answered(_ number: UInt64, _ result: Result<[UInt8], RealtimeError>) {
        guard !isClosed else { return }
        session.answered(number, result, now: Loop.now())
        schedule()
    }
}

extension PusherConfiguration {
    /// The options of requests that the session repeats itself.
    func setRequests(_ rest: inout RESTConfiguration) {
        rest.network = network
        rest.http.compression = compression
        rest.http.http2 = http2
        rest.policy.redirects = redirects
        rest.policy.attempts = 1
        // Sending one twice has the same effect: an authorization signs a text, and the others
        // register the same device, or set an interest. So if a kept connection ends, it is sent
        // again at once.
        rest.policy.retriesUnsafe = true
        rest.policy.attemptTimeout = authTimeout
        rest.policy.deadline = .zero
        rest.policy.order = .never
        rest.policy.bodyLimit = PusherConfiguration.answerLimit
        // The session limits the number of requests.
        rest.queueCapacity = .max
    }
}
