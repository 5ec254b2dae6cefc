package import Session
import Synchronization
package import Wire

/// Requests with retries on a loop: does the I/O for `RESTSession`. Any thread may call it; the
/// client's work runs on the loop's thread.
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`).
package final class RESTClient: ClientDriver<RESTSession, RESTConfiguration, RESTClientHandlers>,
    @unchecked Sendable
{
    // Any thread.
    private let initialCredential = Mutex(InitialCredential())
    private let lastNumber = Atomic<UInt64>(0)
    /// The absolute URL that was parsed last.
    private let lastParsed = Mutex<HTTPURL?>(nil)

    // The loop's owner only.
    /// Outstanding requests, by the number that their caller knows, and by the session's id.
    @exclusivity(unchecked) var calls: [UInt64: RESTCall] = [:]
    @exclusivity(unchecked) var callsByID: [RESTSession.ID: RESTCall] = [:]
    /// `reachability.changes` when the session last checked what is reachable.
    @exclusivity(unchecked) var knownChanges = 0
    @exclusivity(unchecked) var handles: CurlHandles

    package convenience init(base: String?, on loop: Loop) throws(RealtimeError) {
        try loop.checkUsable()
        var initial = RESTConfiguration()
        if let base { try initial.setBase(base) }
        self.init(initial, on: loop)
    }

    private init(_ initial: RESTConfiguration, on loop: Loop) {
        handles = CurlHandles(initial.network, on: loop)
        super.init(RESTSession(initial), initial, on: loop)
    }

    // MARK: ClientDriver

    override class var kind: String { "client" }
    override class var begun: String { "the first request is sent" }

    override func performNext() -> Bool {
        guard let action = session.nextAction() else { return false }
        perform(action)
        return true
    }

    override func noteNetwork() { askReachability() }

    /// Completions run even at the end.
    override var mayAct: Bool { true }

    override func setUp() {
        handles = CurlHandles(configuration.network, on: loop)
        session = RESTSession(configuration)
        session.setCredential(takeInitialCredential() ?? configuration.authorization)
    }

    override func takeHandlers() {
        super.takeHandlers()
        session.renewsCredentials = handlers.credentials != nil
    }

    override func acted() { if calls.isEmpty { setResident(false) } }

    /// Ends all requests: their terminal callbacks have run when this returns. Also called when the
    /// loop is freed, because no callback may begin after that.
    override func closeNow() {
        // A request that another thread submits after this must find the session closed.
        hasBegun = true
        session.close()
        // Even inside a callback, all completions run before this returns.
        performAll()
        act()
        handles.removeAll()
        super.closeNow()
    }

    // MARK: Any thread

    /// Sets the handler that provides fresh credentials; before the first request.
    package func setCredentialsHandler(
        _ handler: ((HTTPResponse) throws(RealtimeError) -> CredentialsAnswer)?
    ) throws(RealtimeError) {
        // Released without the lock: the destroy function of its user data may call us.
        var old: Shared<RESTClientHandlers>?
        defer { withExtendedLifetime(old) {} }
        try changeOptions { _ in
            old = sharedHandlers.current
            sharedHandlers.change { $0.credentials = handler }
        }
    }

    /// The URL of a request. If an absolute URL has the same origin as the previous one, only its
    /// target is parsed: full parsing costs a sixth of a short request.
    func url(of path: String) throws(RealtimeError) -> HTTPURL {
        try options.read { options throws(RealtimeError) in
            try options.pointee.base.url(of: path) { text throws(RealtimeError) in
                if let url = lastParsed.withLock({ $0 })?.sibling(text) { return url }
                let url = try HTTPURL(parsing: text, as: .http)
                lastParsed.withLock { $0 = url }
                return url
            }
        }
    }

    /// Sets the Authorization header for requests without one; nil for none. At any time.
    package func setCredential(_ value: String?) throws(RealtimeError) {
        try HeaderField.validate(name: "Authorization", value: value ?? "")
        try loop.checkUsable()
        let isKept = initialCredential.withLock { initial in
            if !initial.isTaken { initial.value = value }
            return !initial.isTaken
        }
        if !isKept { loop.perform { [self] in session.setCredential(value) } }
    }

    /// The credential for the first request.
    private struct InitialCredential {
        var value: String?
        var isTaken = false
    }

    func takeInitialCredential() -> String? {
        initialCredential.withLock { initial in
            initial.isTaken = true
            return initial.value
        }
    }

    /// Completes a credentials handler that returned `.later`.
    /// - Parameter cause: why there are no fresh credentials.
    package func credentialsAreReady(
        _ areFresh: Bool, because cause: RealtimeError? = nil
    ) throws(RealtimeError) {
        try loop.checkUsable()
        loop.perform { [self] in
            session.authorized(areFresh, because: cause, now: Loop.now())
            schedule()
        }
    }

    func send(_ request: RESTRequest, _ handlers: RESTHandlers) -> UInt64 {
        start()
        let number = lastNumber.add(1, ordering: .relaxed).newValue
        handlers.assigned?(number)
        let call = RESTCall(number, request, handlers, by: self)
        loop.perform { [self] in submit(call) }
        return number
    }

    /// Cancels a request; its terminal callback reports that. Does nothing if it has ended.
    package func cancel(_ number: UInt64) throws(RealtimeError) {
        try loop.checkUsable()
        loop.perform { [self] in
            guard let call = calls[number] else { return }
            call.drop()
            session.cancel(call.id, now: Loop.now())
            schedule()
        }
    }

    /// Pauses or resumes the delivery of a streamed response.
    package func pause(_ number: UInt64, _ isPaused: Bool) throws(RealtimeError) {
        try loop.checkUsable()
        loop.perform { [self] in calls[number]?.pause(isPaused) }
    }

    /// The source of a request body has more bytes.
    package func resumeBody(_ number: UInt64) throws(RealtimeError) {
        try loop.checkUsable()
        loop.perform { [self] in calls[number]?.resumeBody() }
    }
}

// The client's work.
extension RESTClient {
    func submit(_ call: RESTCall) {
        begin()
        // Changes that were reported before this request apply to it.
        if let reachability, reachability.changes != knownChanges { askReachability() }
        call.id = session.submit(
            call.request, key: randomUUID(), isReachable: isReachable(call.url), now: Loop.now())
        calls[call.number] = call
        callsByID[call.id] = call
        setResident(true)
        schedule()
    }

    private func isReachable(_ url: HTTPURL) -> Bool {
        reachability?.isReachable(url, by: configuration.network) ?? true
    }

    func askReachability() {
        knownChanges = reachability?.changes ?? 0
        session.reachabilityChanged(now: Loop.now(), random: randomFraction()) {
            isReachable($0)
        }
    }

    func perform(_ action: consuming RESTSession.Action) {
        switch consume action {
        case .start(let id, let request, let isFresh, let rewinds):
            callsByID[id]?.start(
                request, isFresh: isFresh, rewinds: rewinds, configuration.http, by: handles)
        case .abort(let id): callsByID[id]?.drop()
        case .timeOut(let id): callsByID[id]?.timeOut()
        case .authorize(let refusal): askForCredentials(refusal)
        case .waitForNetwork(let id): callsByID[id]?.waitForNetwork()
        case .finish(let id, let outcome):
            guard let call = callsByID.removeValue(forKey: id) else { return }
            calls[call.number] = nil
            call.finish(outcome)
        }
    }

    private func askForCredentials(_ refusal: ResponseHead?) {
        guard loop.mayCall, let refusal else { return }
        Log.write(.info, "REST: the credentials were refused; asking for fresh ones")
        var answer = CredentialsAnswer.none
        do throws(RealtimeError) {
            answer = try handlers.credentials?(HTTPResponse(refusal, body: [])) ?? .none
        } catch {
            Log.write(.warning, "REST: no fresh credentials: \(error.message)")
        }
        switch answer {
        case .none: session.authorized(false, now: Loop.now())
        case .ready: session.authorized(true, now: Loop.now())
        case .later: return
        }
    }
}
